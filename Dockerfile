# The image holds the program and an empty /data, and nothing else: no shell, no
# package to keep up to date. The program is PID 1, so it gets the signals.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# The repository's history is not in the build context, so the version is told.
ARG VERSION=
RUN CGO_ENABLED=0 go build -trimpath -pgo cmd/snip/profile.pgo -ldflags "-s -w -X main.version=${VERSION}" -o /out/snip ./cmd/snip \
 && mkdir /out/data

FROM scratch
COPY --from=build /out/snip /snip
# A named volume takes its owner from here. A folder of the host that is mounted
# instead must belong to user id 65532.
COPY --from=build --chown=65532:65532 /out/data /data
USER 65532:65532
ENV SNIP_STORE=/data/snip.db
VOLUME /data
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s CMD ["/snip", "health"]
ENTRYPOINT ["/snip"]
