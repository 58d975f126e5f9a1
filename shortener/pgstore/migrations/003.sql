ALTER TABLE links ADD COLUMN direct_redirect boolean NOT NULL DEFAULT false;
