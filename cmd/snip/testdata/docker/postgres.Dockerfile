# Stands in for postgres:15.
FROM snip-test-debian
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends postgresql-15 \
 && sed -i "s/^#listen_addresses = 'localhost'/listen_addresses = '*'/" /usr/share/postgresql/15/postgresql.conf.sample \
 && install -d -m 700 -o postgres -g postgres /var/lib/postgresql/data
ENV PATH=/usr/lib/postgresql/15/bin:$PATH
COPY docker-entrypoint.sh /usr/local/bin/
VOLUME /var/lib/postgresql/data
ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["postgres"]
