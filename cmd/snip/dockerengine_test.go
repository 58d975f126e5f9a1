package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// engine is a Docker engine and a copy of the sources.
type engine struct {
	env       []string
	compose   []string // the command
	debian    bool     // whether there is an image to make others of
	authority *front   // signs what containers trust
	image     string
	dir       string // of the sources, and so the project's name
}

// newEngine returns the engine that runs here, or else one of the test's own.
func newEngine(t *testing.T) *engine {
	t.Helper()
	e := &engine{env: os.Environ(), image: fmt.Sprint("snip-test:", os.Getpid())}
	if _, err := exec.LookPath("docker"); err != nil {
		t.Skip("needs Docker: install docker.io and docker-compose")
	}
	if _, err := e.docker("version"); err != nil {
		e.startEngine(t)
	}
	for _, command := range [][]string{{"docker", "compose"}, {"docker-compose"}} {
		if _, err := e.run(append(slices.Clone(command), "version")...); err == nil {
			e.compose = command
		}
	}
	if e.compose == nil {
		t.Skip("needs docker compose: install docker-compose")
	}
	return e
}

func (e *engine) startEngine(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("dockerd"); err != nil || os.Getuid() != 0 {
		t.Skip("needs a Docker engine: start one, or run this as root where dockerd is installed")
	}
	dir, err := os.MkdirTemp("", "docker") // short, for the sockets in it
	if err != nil {
		t.Fatal(err)
	}
	socket := "unix://" + filepath.Join(dir, "socket")
	p, err := launch(exec.Command("dockerd", "--host", socket, "--data-root", filepath.Join(dir, "data"),
		"--exec-root", filepath.Join(dir, "run"), "--pidfile", filepath.Join(dir, "pid")), dir, os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.stop(); err != nil {
			t.Error(err)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	e.env = append(e.env, "DOCKER_HOST="+socket)
	if err := eventually("the engine answers", func() bool {
		_, err := e.docker("version")
		return err == nil
	}); err != nil {
		t.Skipf("no Docker engine runs here: %v:\n%s", err, p.log())
	}
}

// run returns what a command has written.
func (e *engine) run(command ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), dockerTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir, cmd.Env = e.dir, e.env
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w:\n%s%s", strings.Join(command, " "), err, &stdout, &stderr)
	}
	return stdout.String(), nil
}

func (e *engine) docker(args ...string) (string, error) {
	return e.run(append([]string{"docker"}, args...)...)
}

// composed runs a command of docker compose, for the profile where one is given.
func (e *engine) composed(args ...string) (string, error) {
	return e.run(append(slices.Clone(e.compose), args...)...)
}

// provide sees to the sources, and to the images that the image and the profiles begin
// with. Where they are not there and no registry has them, Debian's packages are in
// their place, until the test is over.
func (e *engine) provide(t *testing.T) {
	t.Helper()
	e.authority = &front{dir: t.TempDir()}
	e.authority.certify(t)
	e.checkOut(t)
	// The largest is the last, since what it is made of lies next to the others.
	for _, image := range []string{"postgres:15", "caddy:2", "golang:1.26"} {
		if _, err := e.docker("image", "inspect", image); err == nil {
			continue
		}
		if _, err := e.docker("pull", image); err != nil {
			e.standIn(t, image)
		}
	}
	e.trust(t)
	t.Cleanup(func() { _, _ = e.docker("rmi", "--force", e.image) })
}

// trust adds the test's certificate to those of the stage that builds the image.
func (e *engine) trust(t *testing.T) {
	t.Helper()
	text := edit(t, textOf(t, "../../Dockerfile"), "WORKDIR /src\n", `WORKDIR /src
COPY cmd/authority.pem /
RUN cat /authority.pem >>/etc/ssl/certs/ca-certificates.crt
`)
	certificate := textOf(t, e.authority.certificate)
	for path, text := range map[string]string{"Dockerfile": text, "cmd/authority.pem": certificate} {
		if err := os.WriteFile(filepath.Join(e.dir, path), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// must runs a command that has to succeed.
func (e *engine) must(t *testing.T, command ...string) string {
	t.Helper()
	out, err := e.run(command...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// checkOut copies the sources as they are, with the repository that names their version.
func (e *engine) checkOut(t *testing.T) {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), fmt.Sprint("sniptest", os.Getpid()))
	e.must(t, "git", "clone", "--quiet", "--no-checkout", root, dir)
	e.must(t, "sh", "-ec", `cd "$0"
		git ls-files -co --exclude-standard -z | tar c --null -T - | tar x -C "$1"
		cd "$1"
		git reset --quiet`, root, dir)
	e.dir = dir
}

// standIn makes an image of Debian's packages.
func (e *engine) standIn(t *testing.T, image string) {
	t.Helper()
	const debian = "snip-test-debian"
	name, _, _ := strings.Cut(image, ":")
	if !e.debian {
		if _, err := exec.LookPath("debootstrap"); err != nil || os.Getuid() != 0 {
			t.Skipf("needs the image %s, or root and debootstrap to make one in its place", image)
		}
		root := filepath.Join(t.TempDir(), "debian")
		e.must(t, "debootstrap", "--variant=minbase", "--include=ca-certificates", "bookworm", root)
		const variable = "ENV DEBIAN_FRONTEND=noninteractive"
		e.must(t, "sh", "-ec", `tar c -C "$0" . | docker import --change "$2" - "$1"`, root, debian, variable)
		t.Cleanup(func() { _, _ = e.docker("rmi", "--force", debian) })
		e.debian = true
	}
	files := filepath.Join(e.dir, "cmd/snip/testdata/docker")
	if name == "golang" {
		e.must(t, "sh", "-ec", `cp -a "$(go env GOROOT)/." "$0/go"; cp /etc/ssl/certs/ca-certificates.crt "$0"`, files)
	}
	e.must(t, "docker", "build", "--quiet", "--tag", image, "--file", filepath.Join(files, name+".Dockerfile"),
		"--build-arg", "GOPROXY="+strings.TrimSpace(e.must(t, "go", "env", "GOPROXY")), files)
	t.Cleanup(func() { _, _ = e.docker("rmi", "--force", image) })
}

// configure writes docker-compose.yml with other text in place of some.
func (e *engine) configure(t *testing.T, pairs ...string) {
	t.Helper()
	pairs = append([]string{"image: snip:latest", "image: " + e.image}, pairs...)
	text := edit(t, textOf(t, "../../docker-compose.yml"), pairs...)
	if err := os.WriteFile(filepath.Join(e.dir, "docker-compose.yml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// downAtEnd removes what the profiles have started when the test is over.
func (e *engine) downAtEnd(t *testing.T) {
	t.Cleanup(func() {
		if t.Failed() {
			logs, _ := e.composed("--profile", "cluster", "logs", "--no-color", "--tail=40")
			t.Log(logs)
		}
		if _, err := e.composed("--profile", "cluster", "down", "--volumes", "--remove-orphans"); err != nil {
			t.Error(err)
		}
	})
}

// container returns the id of a service's container.
func (e *engine) container(service string) (string, error) {
	id, err := e.composed("ps", "-q", service)
	if id = strings.TrimSpace(id); err == nil && id == "" {
		err = fmt.Errorf("no container of %s", service)
	}
	return id, err
}
