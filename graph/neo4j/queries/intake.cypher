// name:  admit
// why:   numbers and stores texts in one statement; the head's lock comes before its number is read, so numbers have neither hole nor twin
// args:  plans: {dataset_id, dataset, partition, epoch, log_id, position, created_at, dataset_properties, ids, artifacts}, one a dataset, in dataset order;
//        artifacts: {id, valid_at, accepted_at, properties}, ids distinct
// gives: one row {dataset_id, fenced, base, fresh, known} a plan; fresh: ids numbered base + 1, base + 2 …; known: stored {id, seq, …}
UNWIND $plans AS plan
MERGE (head:IntakeHead {id: plan.dataset_id})
  ON CREATE SET head.dataset_id = plan.dataset_id, head.name = 'intake of ' + plan.dataset, head.seq = 0, head.position = -1,
    head.log_id = plan.log_id
SET head.locked = true
WITH plan, head, head.seq AS base
OPTIONAL MATCH (owner:Partition {id: plan.partition})
WITH plan, head, base, coalesce(owner.epoch, 0) > plan.epoch AS fenced
CALL (plan, fenced) {
  UNWIND CASE WHEN fenced THEN [] ELSE plan.ids END AS id
  MATCH (stored:Artifact {id: id})
  RETURN collect(stored {.id, .seq, .request_hash, created_at: toString(stored.created_at)}) AS known
}
WITH plan, head, base, fenced, known, [row IN known | row.id] AS known_ids
WITH plan, head, base, fenced, known,
  CASE WHEN fenced THEN [] ELSE [row IN plan.artifacts WHERE NOT row.id IN known_ids] END AS fresh
FOREACH (_ IN CASE WHEN fenced THEN [] ELSE [1] END |
  SET head.seq = base + size(fresh), head.epoch = plan.epoch,
    head.position = CASE WHEN head.log_id = plan.log_id AND head.position > plan.position THEN head.position ELSE plan.position END,
    head.log_id = plan.log_id)
FOREACH (_ IN CASE WHEN base = 0 AND size(fresh) > 0 THEN [1] ELSE [] END |
  MERGE (dataset:Dataset {id: plan.dataset_id}) ON CREATE SET dataset = plan.dataset_properties, dataset.created_at = datetime(plan.created_at))
FOREACH (i IN range(0, size(fresh) - 1) |
  CREATE (artifact:Artifact)
  SET artifact = fresh[i].properties, artifact.seq = base + i + 1, artifact.created_at = datetime(plan.created_at),
    artifact.valid_at = datetime(fresh[i].valid_at), artifact.accepted_at = datetime(fresh[i].accepted_at))
RETURN collect({dataset_id: plan.dataset_id, fenced: fenced, base: base, fresh: [row IN fresh | row.id], known: known}) AS rows;
