# Stands in for golang:1.26 with the Go, the certificates and the module proxy of the
# machine, which the test puts here.
FROM snip-test-debian
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends git
COPY go /usr/local/go
COPY ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
ARG GOPROXY
ENV PATH=/usr/local/go/bin:$PATH GOTOOLCHAIN=local GOPROXY=$GOPROXY
