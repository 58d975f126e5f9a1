-- Links by the hour in UTC; none of a day of an earlier version.
ALTER TABLE history ADD COLUMN hours bigint[] NOT NULL DEFAULT '{}';
