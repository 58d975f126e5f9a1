-- To how many links an act was done; 0 where it is about something else.
ALTER TABLE audit ADD COLUMN links bigint NOT NULL DEFAULT 0;
