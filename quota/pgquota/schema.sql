-- Counters, the secrets of their subjects, and reservations. Text is compared as
-- bytes, so that rows are locked in one order whatever the database's own is.

CREATE TABLE IF NOT EXISTS quota_counters (
	period  text COLLATE "C" NOT NULL,
	level   text COLLATE "C" NOT NULL,
	subject bytea NOT NULL,
	used    bigint NOT NULL DEFAULT 0, -- for good
	held    bigint NOT NULL DEFAULT 0, -- by reservations that are pending
	PRIMARY KEY (period, level, subject),
	CHECK (used >= 0 AND held >= 0 AND held <= 9223372036854775807 - used)
);

CREATE TABLE IF NOT EXISTS quota_secrets (
	period text COLLATE "C" PRIMARY KEY,
	secret bytea NOT NULL
);

-- What is held, at the levels in order. A row that is new was not decided on yet
-- and is seen by nobody but the transaction that made it.
CREATE TABLE IF NOT EXISTS quota_reservations (
	id         bytea PRIMARY KEY,
	state      text NOT NULL DEFAULT 'new' CHECK (state IN ('new', 'pending', 'committed', 'released')),
	on_expiry  text NOT NULL DEFAULT '',
	expires_at timestamptz NOT NULL DEFAULT 'epoch',
	due        timestamptz NOT NULL DEFAULT 'epoch', -- when it is settled, or once it was, forgotten
	levels     text[] NOT NULL DEFAULT '{}',
	subjects   bytea[] NOT NULL DEFAULT '{}',
	periods    text[] NOT NULL DEFAULT '{}',
	costs      bigint[] NOT NULL DEFAULT '{}',
	maxima     bigint[] NOT NULL DEFAULT '{}',
	reserved   bigint[] NOT NULL DEFAULT '{}',
	dry_runs   boolean[] NOT NULL DEFAULT '{}',
	resets     timestamptz[] NOT NULL DEFAULT '{}',
	actual     bigint[] -- what was paid, once it is committed
);

-- When it was created, and created or settled last: null is unknown. And whether its
-- expiry has settled it, and not its caller since.
ALTER TABLE quota_reservations
	ADD COLUMN IF NOT EXISTS created_at timestamptz,
	ADD COLUMN IF NOT EXISTS updated_at timestamptz,
	ADD COLUMN IF NOT EXISTS expired boolean NOT NULL DEFAULT false;

CREATE INDEX IF NOT EXISTS quota_reservations_due ON quota_reservations (due);
