# Run once by the image of PostgreSQL, when the first database is made: roles that may
# no more than they need, and a standby that every commit waits for.
psql --username "$POSTGRES_USER" --dbname postgres -v ON_ERROR_STOP=1 -v password="$POSTGRES_PASSWORD" <<'SQL'
CREATE ROLE snip LOGIN PASSWORD :'password';
CREATE DATABASE snip OWNER snip;
CREATE ROLE replicator LOGIN REPLICATION PASSWORD :'password';
ALTER SYSTEM SET synchronous_standby_names = 'FIRST 1 (standby)';
SQL
echo "host replication replicator all scram-sha-256" >>"$PGDATA/pg_hba.conf"
