// name:  constrain_schema
// why:   one node holds the schema's version and is the lock of all migrations
// args:  none
// gives: nothing
CREATE CONSTRAINT schema_id IF NOT EXISTS FOR (n:Schema) REQUIRE n.id IS UNIQUE;

// name:  lock_schema
// why:   writing takes the node's lock until the transaction ends; who comes second reads what the first has noted
// args:  none
// gives: one row {version}; 0 for an empty database
MERGE (schema:Schema {id: 'schema'})
SET schema.name = 'schema', schema.locked = true
WITH schema
RETURN coalesce(schema.version, 0) AS version;

// name:  note_migration
// why:   a migration is applied once
// args:  version: its number; migration: its file's name
// gives: nothing
MATCH (schema:Schema {id: 'schema'})
SET schema.version = $version, schema.applied = coalesce(schema.applied, []) + $migration;
