-- What is compared as bytes says so, whatever the database's own order is.

-- One row.
CREATE TABLE state (
	one    boolean PRIMARY KEY DEFAULT true CHECK (one),
	newest text COLLATE "C" NOT NULL DEFAULT '' -- the newest day that has a counted link
);
INSERT INTO state DEFAULT VALUES;

-- A row for each writer of each process that runs: the number of the batch that it
-- has committed last, by which it finds out what became of a commit whose answer
-- was lost.
CREATE TABLE writers (
	id    bytea PRIMARY KEY,
	batch bigint NOT NULL,
	at    timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE links (
	slug          text COLLATE "C" PRIMARY KEY,
	destination   bytea NOT NULL,
	created_at    timestamptz NOT NULL,
	expires_at    timestamptz, -- null is never
	day           text COLLATE "C" NOT NULL,
	creator       bytea NOT NULL,
	key           bigint NOT NULL, -- 64 bits, of which the first is no sign; 0 is none
	max_visits    bigint NOT NULL,
	forward_query boolean NOT NULL,
	shows_target  boolean NOT NULL,
	token         bytea NOT NULL, -- the hash, or nothing
	taken_down    text NOT NULL,
	deleted       boolean NOT NULL,
	visited       bigint NOT NULL DEFAULT 0 -- visits counted against max_visits
);
CREATE INDEX links_of_key ON links (key, created_at, slug) WHERE key <> 0 AND NOT deleted;

-- What is known of a link's visits, in JSON.
CREATE TABLE clicks (
	slug   text COLLATE "C" PRIMARY KEY,
	visits bytea NOT NULL DEFAULT '{}'
);

CREATE TABLE answers (
	day    text COLLATE "C" NOT NULL,
	id     bytea NOT NULL,
	at     timestamptz NOT NULL,
	sealed bytea NOT NULL,
	PRIMARY KEY (day, id)
);

CREATE TABLE outbox (
	id        text COLLATE "C" PRIMARY KEY,
	at        timestamptz NOT NULL,
	kind      text NOT NULL,
	message   text NOT NULL,
	delivered boolean NOT NULL DEFAULT false -- kept for a while, so that it is not told again
);

-- Names and notes are what people have typed, so they may hold what is no text.
CREATE TABLE entries (
	kind  text COLLATE "C" NOT NULL,
	name  bytea NOT NULL,
	value bytea NOT NULL,
	PRIMARY KEY (kind, name)
);

CREATE TABLE audit (
	number bigint PRIMARY KEY,
	at     timestamptz NOT NULL,
	action bytea NOT NULL,
	target bytea NOT NULL,
	reason bytea NOT NULL,
	note   bytea NOT NULL
);

CREATE TABLE history (
	day     text COLLATE "C" PRIMARY KEY,
	created bigint NOT NULL DEFAULT 0,
	clients bigint NOT NULL DEFAULT 0,
	busiest bigint NOT NULL DEFAULT 0,
	refused jsonb NOT NULL DEFAULT '{}' -- by level
);
