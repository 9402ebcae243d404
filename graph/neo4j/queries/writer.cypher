// Times travel as ISO 8601 text in UTC: the driver needs forty times as long for a time of its own kind.

// name:  raise_epochs
// why:   whoever is assigned a partition fences its former owner; the lock comes before the read, or two could raise to the same number
// args:  ids: partition names, sorted
// gives: one row {id, epoch} a partition, the new epoch
UNWIND $ids AS id
MERGE (owner:Partition {id: id})
SET owner.name = id, owner.locked = true
WITH owner
SET owner.epoch = coalesce(owner.epoch, 0) + 1
RETURN owner.id AS id, owner.epoch AS epoch;

// name:  candidates
// why:   what a turn must know before it decides; the head is read first: a write in between then shows as a number already applied
// args:  queries: {dataset_id, names: [digest], slots: [{subject, relation}], triples: [{subject, relation, object}]}, subjects and objects
//        by the digest of their names, relations as in slots
// gives: one row {dataset_id, applied_seq, known_at, entities, facts} a query; facts no longer believed have no slot and no triple
UNWIND $queries AS query
OPTIONAL MATCH (head:WriterHead {id: query.dataset_id})
WITH query, coalesce(head.applied_seq, 0) AS applied_seq, toString(head.known_at) AS known_at
CALL (query) {
  UNWIND query.names AS digest
  MATCH (entity:Entity {name_digest: digest})
  RETURN collect(entity {.id, .name, .type, .description, created_at: toString(entity.created_at)}) AS entities
}
CALL (query) {
  UNWIND query.slots AS slot
  MATCH (subject:Entity {name_digest: slot.subject})
  WITH subject.id + '/' + slot.relation AS wanted
  MATCH (fact:Fact {slot: wanted})
  RETURN collect(fact {.*, valid_at: toString(fact.valid_at), created_at: toString(fact.created_at), invalid_at: toString(fact.invalid_at),
    stated_invalid_at: toString(fact.stated_invalid_at), expired_at: toString(fact.expired_at), retracted_at: toString(fact.retracted_at)}) AS in_slots
}
CALL (query) {
  UNWIND query.triples AS triple
  MATCH (subject:Entity {name_digest: triple.subject})
  WITH triple, subject.id AS subject_id
  MATCH (object:Entity {name_digest: triple.object})
  WITH subject_id + '/' + triple.relation + '/' + object.id AS wanted
  MATCH (fact:Fact {triple: wanted})
  RETURN collect(fact {.*, valid_at: toString(fact.valid_at), created_at: toString(fact.created_at), invalid_at: toString(fact.invalid_at),
    stated_invalid_at: toString(fact.stated_invalid_at), expired_at: toString(fact.expired_at), retracted_at: toString(fact.retracted_at)}) AS repeats
}
RETURN collect({dataset_id: query.dataset_id, applied_seq: applied_seq, known_at: known_at, entities: entities, facts: in_slots + repeats})
  AS rows;

// name:  fence
// why:   first of every group: locks each head by writing to it, then judges; two owners of a partition cannot both pass
// args:  plans: {dataset_id, dataset, partition, epoch, first, last, applied_at}, one a dataset, in dataset order
// gives: one row {dataset_id, applied_seq, owner_epoch} a plan, the number before; the head moves if the plan is to be applied
UNWIND $plans AS plan
MERGE (head:WriterHead {id: plan.dataset_id})
  ON CREATE SET head.dataset_id = plan.dataset_id, head.name = 'writer of ' + plan.dataset, head.applied_seq = 0
SET head.locked = true
WITH plan, head, head.applied_seq AS applied_seq
OPTIONAL MATCH (owner:Partition {id: plan.partition})
WITH plan, head, applied_seq, coalesce(owner.epoch, 0) AS owner_epoch
FOREACH (_ IN CASE WHEN applied_seq = plan.first - 1 AND owner_epoch <= plan.epoch THEN [1] ELSE [] END |
  SET head.applied_seq = plan.last, head.epoch = plan.epoch, head.known_at = datetime(plan.applied_at))
RETURN collect({dataset_id: plan.dataset_id, applied_seq: applied_seq, owner_epoch: owner_epoch}) AS rows;

// name:  create_entities
// why:   names met for the first time; an id that is there already stays as it is
// args:  entities: {id, created_at, properties}
// gives: one row {written}: how many there are now
UNWIND $entities AS row
MERGE (entity:Entity {id: row.id})
  ON CREATE SET entity = row.properties, entity.created_at = datetime(row.created_at)
RETURN count(*) AS written;

// name:  create_facts
// why:   a fact is a node between its entities, because it has many sources
// args:  facts: {subject_id, object_id, properties, and each of the fact's times}
// gives: one row {written}; fewer than asked if an entity is missing
UNWIND $facts AS row
MATCH (subject:Entity {id: row.subject_id})
WITH row, subject
MATCH (object:Entity {id: row.object_id})
CREATE (fact:Fact)
SET fact = row.properties, fact.valid_at = datetime(row.valid_at), fact.created_at = datetime(row.created_at),
  fact.invalid_at = datetime(row.invalid_at), fact.stated_invalid_at = datetime(row.stated_invalid_at),
  fact.expired_at = datetime(row.expired_at), fact.retracted_at = datetime(row.retracted_at)
CREATE (fact)-[:SUBJECT]->(subject), (fact)-[:OBJECT]->(object)
RETURN count(*) AS written;

// name:  close_facts
// why:   a newer statement ends an older one; the row stays, its interval closes, and it is no candidate any more
// args:  closures: {dataset_id, fact_id, invalid_at, expired_at}
// gives: one row {written}; fewer than asked if a fact is unknown, of another dataset or closed already
UNWIND $closures AS row
MATCH (fact:Fact {id: row.fact_id})
WHERE fact.dataset_id = row.dataset_id AND fact.expired_at IS NULL
SET fact.invalid_at = datetime(row.invalid_at), fact.expired_at = datetime(row.expired_at)
REMOVE fact.slot, fact.triple
RETURN count(*) AS written;

// name:  note_writes
// why:   receipts, from which changes are told again after a crash, and which text states or mentions what
// args:  receipts: {applied_at, properties}; states: {artifact_id, fact_id}; mentions: {artifact_id, entity_id}; each pair once
// gives: one row {states, mentions}; fewer than asked if one end is missing
CALL () {
  UNWIND $receipts AS row
  CREATE (receipt:Write)
  SET receipt = row.properties, receipt.applied_at = datetime(row.applied_at)
}
CALL () {
  UNWIND $states AS pair
  MATCH (artifact:Artifact {id: pair.artifact_id})
  WITH artifact, pair
  MATCH (fact:Fact {id: pair.fact_id})
  CREATE (artifact)-[:STATES]->(fact)
  RETURN count(*) AS states
}
CALL () {
  UNWIND $mentions AS pair
  MATCH (artifact:Artifact {id: pair.artifact_id})
  WITH artifact, pair
  MATCH (entity:Entity {id: pair.entity_id})
  CREATE (artifact)-[:MENTIONS]->(entity)
  RETURN count(*) AS mentions
}
RETURN states, mentions;

// name:  stored_writes
// why:   the change of an applied write, told again
// args:  ids: of receipts
// gives: one row {receipt, artifact, entities, facts} a known id, entities and facts in any order
UNWIND $ids AS id
MATCH (receipt:Write {id: id})
WITH receipt
MATCH (artifact:Artifact {id: receipt.artifact_id})
CALL (receipt) {
  UNWIND receipt.entity_ids + receipt.new_entity_ids AS id
  WITH DISTINCT id
  MATCH (entity:Entity {id: id})
  RETURN collect(entity {.id, .name, .type, .description, created_at: toString(entity.created_at)}) AS entities
}
CALL (receipt) {
  UNWIND receipt.created_fact_ids + receipt.restated_fact_ids + receipt.closed_fact_ids AS id
  WITH DISTINCT id
  MATCH (fact:Fact {id: id})
  RETURN collect(fact {.*, valid_at: toString(fact.valid_at), created_at: toString(fact.created_at), invalid_at: toString(fact.invalid_at),
    stated_invalid_at: toString(fact.stated_invalid_at), expired_at: toString(fact.expired_at), retracted_at: toString(fact.retracted_at)}) AS facts
}
RETURN receipt {.*, applied_at: toString(receipt.applied_at)} AS receipt,
  artifact {.text, .title, valid_at: toString(artifact.valid_at), accepted_at: toString(artifact.accepted_at)} AS artifact,
  entities, facts;
