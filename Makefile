# make prints what can be made.

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0
VERSION     ?= $(shell git describe --tags --always --dirty 2>/dev/null)
LDFLAGS     := -s -w -X main.version=$(VERSION)
# The profile makes the program some 3 % faster, and its first build some 15 s slower.
BUILD       := CGO_ENABLED=0 go build -trimpath -pgo cmd/snip/profile.pgo -ldflags "$(LDFLAGS)"

.DEFAULT_GOAL := help
.PHONY: help run test torture mutation tools format lint vulnerabilities bench build profile image docker clean

help: ## Print this help
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## Serve on :8080 with ./snip.db; ARGS="--quota-client 10" adds flags
	go run ./cmd/snip $(ARGS)

test: tools format lint ## The gate: formatting, vet, staticcheck, known vulnerabilities, every test under the race detector
	cd bench && go test -race ./...
	go test -race ./...

torture: tools ## Kill it, break its disk and cut its power, far more often than make test; SEED=1 repeats a run
	@echo "seed $(SEED)"
	go test -count=1 -timeout 40m -v -run '^Test(Kill|PowerCut|Fault|Slow|Hanging|Start|FullDisk|Clock|Failover|Replicas(Model|Linear))' ./cmd/snip -torture -torture.seed $(SEED)
	go test -race -count=20 -timeout 20m -run 'TestStore/an_order' ./shortener/memstore ./shortener/boltstore
	TMPDIR=$$(test -d /dev/shm && echo /dev/shm || echo "$${TMPDIR:-/tmp}") go test -count=1 -timeout 30m -v -run 'TestStore/random' \
		./shortener/memstore ./shortener/boltstore -rapid.checks=11000 -rapid.steps=100 -rapid.seed=$(SEED)

mutation: ## Break each rule of the limiter and expect a named test to notice; ARGS=hungry picks
	go run ./mutation $(ARGS)

torture: SEED := $(or $(SEED),$(shell od -An -N4 -tu4 /dev/urandom))

# The race detector links against C, the form is tested in a real browser,
# strace breaks the disk under the real program, nginx and Caddy run in front of it,
# and PostgreSQL counts. Debian may start those three as services; the tests start
# their own, elsewhere. It keeps PostgreSQL's programs outside of the path.
# As root on Debian, or in CI, what is missing is installed; else it is named.
tools:
	@command -v go >/dev/null || { echo "Go 1.26.8 or newer is missing: see https://go.dev/dl/"; exit 1; }
	@command -v "$$(go env CC)" >/dev/null || $(call install,gcc) || \
		{ echo "A C compiler is missing, which go test -race needs: install gcc."; exit 1; }
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || $(call install,chromium) || \
		echo "Chromium is missing, so the tests in a browser cannot run: install chromium."
	@command -v curl >/dev/null || $(call install,curl) || \
		echo "curl is missing, so the examples of the API cannot be run: install curl."
	@command -v strace >/dev/null || $(call install,strace) || \
		echo "strace is missing, so the tests that break the disk cannot run: install strace."
	@test -x /usr/sbin/nginx || command -v nginx >/dev/null || $(call install,nginx) || \
		echo "nginx is missing, so the tests behind it cannot run: install nginx."
	@command -v caddy >/dev/null || $(call install,caddy) || \
		echo "Caddy is missing, so the tests behind it cannot run: install caddy."
	@command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || $(call install,postgresql) || \
		echo "PostgreSQL is missing, so the tests with it cannot run: install postgresql."

# Fails without a word where it has no right to install.
define install
{ command -v apt-get >/dev/null && { test "$$(id -u)" = 0 || { test -n "$$CI" && command -v sudo >/dev/null; }; } && \
	as="$$(test "$$(id -u)" = 0 || echo 'sudo -n')" && $$as apt-get update -qq </dev/null && \
	$$as env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(1) </dev/null; }
endef

format:
	@unformatted="$$(gofmt -l .)"; test -z "$$unformatted" || \
		{ echo "Not formatted; run gofmt -w on:"; echo "$$unformatted"; exit 1; }

lint: vulnerabilities
	go vet ./...
	go vet -tags memstore ./cmd/snip
	go run $(STATICCHECK) ./...
	cd bench && go vet ./... && go run $(STATICCHECK) ./...

# Fails on a known vulnerability that the program can reach, also one of the oldest Go
# that go.mod admits: GOVERSION names that Go. The reports come as a module, because a
# machine that builds the program reaches a module proxy, and maybe nothing else.
vulnerabilities:
	@reports="$$(go mod download -json golang.org/x/vulndb@latest | sed -n 's/^.*"Dir": "\(.*\)",$$/\1/p')"; \
	test -n "$$reports" || { echo "The module golang.org/x/vulndb is out of reach, so known vulnerabilities were not looked for."; test -z "$$CI"; exit; }; \
	mkdir -p bin; GOVERSION="go$$(go list -m -f '{{.GoVersion}}')" go run $(GOVULNCHECK) \
		-db "file://$$reports/data/osv" ./... >bin/vulnerabilities.txt 2>&1; \
	grep -q '^=== Symbol Results' bin/vulnerabilities.txt || { cat bin/vulnerabilities.txt; exit 1; }; \
	awk 'FILENAME == ARGV[1] { accepted[$$1]; next } \
		/^Vulnerability/ && !($$3 in accepted) { sub(/ *Example traces.*/, ""); print; new = 1 } \
		END { exit new }' .ci/accepted-vulnerabilities.txt RS= bin/vulnerabilities.txt || \
		{ echo "Update what has them, or accept them in .ci/accepted-vulnerabilities.txt with the reason."; exit 1; }

bench: build ## Measure bin/snip against bare net/http and the disk; ARGS=-quick tries it out
	@command -v wrk >/dev/null || $(call install,wrk) || { echo "wrk is missing: install wrk."; exit 1; }
	@$(BUILD) -tags memstore -o bin/snip-memory ./cmd/snip
	@cd bench && go run . -snip ../bin/snip -memory ../bin/snip-memory -dir "$${TMPDIR:-../bin}" $(ARGS)

build: ## Build the static binary bin/snip
	$(BUILD) -o bin/snip ./cmd/snip

profile: ## Take anew what make build tells the compiler of the program
	go test -trimpath -run '^$$' -bench Serve -benchtime 5s -cpuprofile cmd/snip/profile.pgo -o bin/snip.test ./cmd/snip

image: ## Build the container image snip:latest
	docker build --build-arg VERSION="$(VERSION)" -t snip:latest .

docker: ## Run the image and both profiles of docker-compose.yml on a Docker engine, some minutes
	go test -count=1 -timeout 40m -v -run '^TestDocker$$' ./cmd/snip -docker

clean: ## Remove what was built; data files stay
	rm -rf bin
