// name:  lock_runs
// why:   events are folded in Python; the lock lets no other process fold the same run meanwhile
// args:  ids: of runs, sorted, so that two batches cannot deadlock
// gives: one row {id, run} a run; `run` has no state if it is new
UNWIND $ids AS id
MERGE (run:Run {id: id})
SET run.locked = true
RETURN collect({id: id, run: run {.*}}) AS rows;

// name:  write_runs
// why:   the folded rows, whole
// args:  runs: {id, accepted_at, updated_at, properties}
// gives: one row {written}
UNWIND $runs AS row
MATCH (run:Run {id: row.id})
SET run = row.properties, run.accepted_at = datetime(row.accepted_at), run.updated_at = datetime(row.updated_at)
RETURN count(*) AS written;

// name:  run
// why:   one run of one user
// args:  id
// gives: one row {run}, or none
MATCH (run:Run {id: $id})
RETURN run {.*} AS run;

// name:  runs_of_user
// why:   a page of all runs of a user, newest first, read off the index in its order
// args:  low, high: bounds of `by_user`; state or null; limit
// gives: {run} in order
MATCH (run:Run)
WHERE run.by_user >= $low AND run.by_user < $high AND ($state IS NULL OR run.state = $state)
WITH run ORDER BY run.by_user DESC LIMIT $limit
RETURN collect({run: run {.*}}) AS rows;

// name:  runs_of_dataset
// why:   as runs_of_user, for one dataset
// args:  low, high: bounds of `by_dataset`; state or null; limit
// gives: {run} in order
MATCH (run:Run)
WHERE run.by_dataset >= $low AND run.by_dataset < $high AND ($state IS NULL OR run.state = $state)
WITH run ORDER BY run.by_dataset DESC LIMIT $limit
RETURN collect({run: run {.*}}) AS rows;
