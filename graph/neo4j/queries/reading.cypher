// `rows` is collected: see `_rows` in database.py. `gives` names what each of them has.

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
WITH node.id AS id, score ORDER BY score DESC, id
RETURN collect({id: id, score: score}) AS rows;

// name:  find_entities
// why:   as find_texts, for names
// args:  words, dataset_id, limit: as find_texts
// gives: {id, score}, best first
CALL db.index.fulltext.queryNodes('entity_words', $words, {limit: $limit}) YIELD node, score
WHERE node.dataset_id = $dataset_id
WITH node.id AS id, score ORDER BY score DESC, id
RETURN collect({id: id, score: score}) AS rows;

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
RETURN collect(fact {.id, .subject_id, .subject, .relation, .object_id, .object, .description, .origin, .model_id, .seq,
  valid_at: toString(fact.valid_at), created_at: toString(fact.created_at), invalid_at: toString(fact.invalid_at),
  stated_invalid_at: toString(fact.stated_invalid_at), expired_at: toString(fact.expired_at),
  retracted_at: toString(fact.retracted_at)}) AS rows;

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
RETURN collect({entity_id: entity_id, fact_ids: fact_ids}) AS rows;

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
WITH fact.id AS fact_id, collect(artifact.id)[..$limit] AS source_ids
RETURN collect({fact_id: fact_id, source_ids: source_ids}) AS rows;

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
RETURN collect({fact_ids: fact_ids, text: artifact {.id, .run_id, .seq, .text, .title, .author, .source_type, .connector, .url,
  valid_at: toString(artifact.valid_at), created_at: toString(artifact.created_at)}}) AS rows;
