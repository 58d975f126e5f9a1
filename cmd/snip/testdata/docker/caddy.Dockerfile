# Stands in for caddy:2.
FROM snip-test-debian
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends caddy
ENV XDG_CONFIG_HOME=/config XDG_DATA_HOME=/data
CMD ["caddy", "run", "--config", "/etc/caddy/Caddyfile", "--adapter", "caddyfile"]
