# Run once by the image of PostgreSQL, when the first database is made: a role for each
# program that connects, and a standby that every commit waits for.
#
# The role snip owns the tables that it makes, and nothing else. The superuser's password
# opens nothing over the network: psql in the container needs none.
snip="$(cat /run/secrets/snip)"
replicator="$(cat /run/secrets/replicator)"
export snip="${snip:?its secret is empty}" replicator="${replicator:?its secret is empty}"
psql --username "$POSTGRES_USER" --dbname postgres -v ON_ERROR_STOP=1 <<'SQL'
\getenv snip snip
\getenv replicator replicator
CREATE ROLE snip LOGIN PASSWORD :'snip';
CREATE ROLE replicator LOGIN REPLICATION PASSWORD :'replicator';
CREATE DATABASE snip;
REVOKE ALL ON DATABASE snip, postgres FROM PUBLIC;
GRANT CONNECT ON DATABASE snip TO snip;
ALTER SYSTEM SET synchronous_standby_names = 'FIRST 1 (standby)';
\connect snip
GRANT CREATE ON SCHEMA public TO snip;
SQL
unset snip replicator
cat >"$PGDATA/pg_hba.conf" <<'HBA'
local all         postgres       trust
host  snip        snip       all scram-sha-256
host  replication replicator all scram-sha-256
HBA
