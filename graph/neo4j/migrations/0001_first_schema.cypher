// Uniqueness is a constraint, never a read before a write. Every id contains its dataset by derivation.
// Every statement may be run twice: a process that dies between it and the note of its number leaves that to the next one.

CREATE CONSTRAINT dataset_id IF NOT EXISTS FOR (n:Dataset) REQUIRE n.id IS UNIQUE;
CREATE CONSTRAINT partition_id IF NOT EXISTS FOR (n:Partition) REQUIRE n.id IS UNIQUE;
// Two heads a dataset, so that intake does not wait for the writer's commit.
CREATE CONSTRAINT intake_head_id IF NOT EXISTS FOR (n:IntakeHead) REQUIRE n.id IS UNIQUE;
CREATE CONSTRAINT writer_head_id IF NOT EXISTS FOR (n:WriterHead) REQUIRE n.id IS UNIQUE;
CREATE CONSTRAINT artifact_id IF NOT EXISTS FOR (n:Artifact) REQUIRE n.id IS UNIQUE;
CREATE CONSTRAINT entity_id IF NOT EXISTS FOR (n:Entity) REQUIRE n.id IS UNIQUE;
CREATE CONSTRAINT fact_id IF NOT EXISTS FOR (n:Fact) REQUIRE n.id IS UNIQUE;
CREATE CONSTRAINT write_id IF NOT EXISTS FOR (n:Write) REQUIRE n.id IS UNIQUE;
CREATE CONSTRAINT run_id IF NOT EXISTS FOR (n:Run) REQUIRE n.id IS UNIQUE;

// Entities of a name, whatever their type: a digest, since a range index takes no value above 8 KiB.
CREATE INDEX entity_name_digest IF NOT EXISTS FOR (n:Entity) ON (n.name_digest);

// `slot` and `triple` are there only while a fact is believed: candidates cost the same after a thousand closures, and on a hub.
CREATE INDEX fact_slot IF NOT EXISTS FOR (n:Fact) ON (n.slot);
CREATE INDEX fact_triple IF NOT EXISTS FOR (n:Fact) ON (n.triple);

// The newest facts of an entity without walking from it.
CREATE INDEX fact_of_subject IF NOT EXISTS FOR (n:Fact) ON (n.subject_id, n.valid_at);
CREATE INDEX fact_of_object IF NOT EXISTS FOR (n:Fact) ON (n.object_id, n.valid_at);

// Pages of runs, newest first.
CREATE INDEX run_of_user IF NOT EXISTS FOR (n:Run) ON (n.by_user);
CREATE INDEX run_of_dataset IF NOT EXISTS FOR (n:Run) ON (n.by_dataset);

// `dataset_token` is the dataset's id without hyphens: one word, so that the index itself leaves other datasets out.
CREATE FULLTEXT INDEX artifact_words IF NOT EXISTS FOR (n:Artifact) ON EACH [n.title, n.text, n.dataset_token];
CREATE FULLTEXT INDEX entity_words IF NOT EXISTS FOR (n:Entity) ON EACH [n.name, n.dataset_token];

CALL db.awaitIndexes(300);
