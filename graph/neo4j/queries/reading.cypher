// name:  has_dataset
// why:   an unknown dataset is told from an empty answer
// args:  dataset_id
// gives: one row {id}, or none
MATCH (dataset:Dataset {id: $dataset_id})
RETURN dataset.id AS id;

// name:  find_texts
// why:   a text is found by its words from the moment it is stored; the index itself leaves other datasets out
// args:  words: a Lucene query that names the dataset's token; dataset_id; limit
// gives: {id, score}, best first
CALL db.index.fulltext.queryNodes('artifact_words', $words, {limit: $limit}) YIELD node, score
WHERE node.dataset_id = $dataset_id
RETURN node.id AS id, score
ORDER BY score DESC, id;

// name:  find_entities
// why:   as find_texts, for names
// args:  words, dataset_id, limit: as find_texts
// gives: {id, score}, best first
CALL db.index.fulltext.queryNodes('entity_words', $words, {limit: $limit}) YIELD node, score
WHERE node.dataset_id = $dataset_id
RETURN node.id AS id, score
ORDER BY score DESC, id;

// name:  facts
// why:   facts by id, and those that texts state; what is true is judged by the caller
// args:  dataset_id, fact_ids, artifact_ids
// gives: the columns of a fact, each fact once
CALL () {
  UNWIND $fact_ids AS id
  MATCH (fact:Fact {id: id})
  RETURN fact
  UNION
  UNWIND $artifact_ids AS id
  MATCH (artifact:Artifact {id: id})
  WITH artifact
  MATCH (artifact)-[:STATES]->(fact:Fact)
  RETURN fact
}
WITH fact WHERE fact.dataset_id = $dataset_id
RETURN fact.id AS id, fact.subject_id AS subject_id, fact.subject AS subject, fact.relation AS relation,
  fact.object_id AS object_id, fact.object AS object, fact.description AS description, toString(fact.valid_at) AS valid_at,
  toString(fact.created_at) AS created_at, toString(fact.invalid_at) AS invalid_at,
  toString(fact.stated_invalid_at) AS stated_invalid_at, toString(fact.expired_at) AS expired_at,
  toString(fact.retracted_at) AS retracted_at, fact.origin AS origin, fact.model_id AS model_id, fact.seq AS seq;

// name:  newest_facts
// why:   the newest facts of each entity, true at the asked times; off the index in its order, so a hub costs no more than a leaf
// args:  dataset_id, entity_ids, as_of, known_at, limit: of each entity
// gives: {entity_id, fact_ids} for each entity with any, the newest first
WITH datetime($as_of) AS as_of, datetime($known_at) AS known_at
UNWIND $entity_ids AS entity_id
CALL (entity_id, as_of, known_at) {
  CALL (entity_id, as_of, known_at) {
    MATCH (fact:Fact)
    WHERE fact.subject_id = entity_id AND fact.valid_at <= as_of
      AND fact.created_at <= known_at AND (fact.retracted_at IS NULL OR fact.retracted_at > known_at)
      AND coalesce(CASE WHEN fact.expired_at <= known_at THEN fact.invalid_at ELSE fact.stated_invalid_at END > as_of, true)
    RETURN fact ORDER BY fact.subject_id DESC, fact.valid_at DESC LIMIT $limit
    UNION
    MATCH (fact:Fact)
    WHERE fact.object_id = entity_id AND fact.valid_at <= as_of
      AND fact.created_at <= known_at AND (fact.retracted_at IS NULL OR fact.retracted_at > known_at)
      AND coalesce(CASE WHEN fact.expired_at <= known_at THEN fact.invalid_at ELSE fact.stated_invalid_at END > as_of, true)
    RETURN fact ORDER BY fact.object_id DESC, fact.valid_at DESC LIMIT $limit
  }
  WITH fact WHERE fact.dataset_id = $dataset_id
  WITH fact ORDER BY fact.valid_at DESC, fact.id LIMIT $limit
  RETURN collect(fact.id) AS fact_ids
}
WITH entity_id, fact_ids WHERE size(fact_ids) > 0
RETURN entity_id, fact_ids;

// name:  sources
// why:   which texts state a fact
// args:  fact_ids, known_at, limit: of each fact
// gives: {fact_id, source_ids} for each fact with a source, ids oldest first
WITH datetime($known_at) AS known_at
UNWIND $fact_ids AS fact_id
MATCH (fact:Fact {id: fact_id})
WITH fact, known_at
MATCH (fact)<-[:STATES]-(artifact:Artifact)
WHERE artifact.created_at <= known_at
WITH fact, artifact ORDER BY artifact.valid_at, artifact.seq
RETURN fact.id AS fact_id, collect(artifact.id)[..$limit] AS source_ids;

// name:  texts
// why:   texts by id with where they came from, and every fact they state
// args:  dataset_id, artifact_ids, known_at
// gives: {text, fact_ids} for each text of the dataset that was known by then
WITH datetime($known_at) AS known_at
UNWIND $artifact_ids AS artifact_id
MATCH (artifact:Artifact {id: artifact_id})
WHERE artifact.dataset_id = $dataset_id AND artifact.created_at <= known_at
CALL (artifact) {
  MATCH (artifact)-[:STATES]->(fact:Fact)
  RETURN collect(fact.id) AS fact_ids
}
RETURN artifact {.id, .run_id, .seq, .text, .title, .author, .source_type, .url,
  valid_at: toString(artifact.valid_at), created_at: toString(artifact.created_at)} AS text, fact_ids;
