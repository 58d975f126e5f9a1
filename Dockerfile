# The image holds the program, the root certificates that its outgoing TLS needs, and an
# empty /data: no shell, no package to keep up to date. The program is PID 1, so it gets
# the signals.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# Without a version given, git names the commit, and whether the sources were changed since.
# Sources that stay out of the build context do not count as removed.
ARG VERSION=
RUN version="${VERSION:-$(git describe --tags --always)$(git diff --quiet --diff-filter=d HEAD || echo -dirty)}" \
 && CGO_ENABLED=0 go build -trimpath -buildvcs=false -pgo cmd/snip/profile.pgo \
        -ldflags "-s -w -X main.version=$version" -o /out/snip ./cmd/snip \
 && mkdir /out/data

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/snip /snip
# A named volume takes its owner from here. A folder of the host that is mounted
# instead must belong to user id 65532.
COPY --from=build --chown=65532:65532 /out/data /data
USER 65532:65532
ENV SNIP_STORE=/data/snip.db
VOLUME /data
EXPOSE 8080
# Not whether links can be made: a full disk is no reason to restart a server that redirects.
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s CMD ["/snip", "health", "--live"]
ENTRYPOINT ["/snip"]
