# Runs PostgreSQL as its image does. Where FOLLOW names another database and there is
# no data yet, this one first becomes a standby of that, under the name in NAME.
set -eu
if [ -n "${FOLLOW:-}" ] && [ ! -e "$PGDATA" ]; then
	rm -rf "$PGDATA.new" # of a copy that was broken off
	password="$(cat /run/secrets/replicator)"
	PGPASSWORD="$password" pg_basebackup --pgdata "$PGDATA.new" --write-recovery-conf --checkpoint fast \
		--dbname "host=$FOLLOW user=replicator application_name=$NAME"
	# Once promoted it waits for nobody, until it is told of a standby of its own.
	echo "synchronous_standby_names = ''" >>"$PGDATA.new/postgresql.auto.conf"
	mv "$PGDATA.new" "$PGDATA"
fi
exec docker-entrypoint.sh "$@"
