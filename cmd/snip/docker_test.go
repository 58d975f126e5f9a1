package main

import (
	"archive/tar"
	"crypto/tls"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var dockerWanted = flag.Bool("docker", false, "run the image and both profiles of compose on a Docker engine")

// dockerTime bounds a command of Docker's, such as a build.
const dockerTime = 10 * time.Minute

// TestDocker builds the image and runs both profiles of docker-compose.yml on a Docker
// engine. Only published ports and the name of the image are other ones.
func TestDocker(t *testing.T) {
	t.Parallel()
	if !*dockerWanted {
		t.Skip("takes minutes and a Docker engine; make docker runs it")
	}
	e := newEngine(t)
	e.provide(t)
	t.Run("image", func(t *testing.T) { withinOneDay(t, func() error { return e.one(t) }) })
	t.Run("cluster", func(t *testing.T) { withinOneDay(t, func() error { return e.cluster(t) }) })
}

// awaitHealth returns when the engine finds the service healthy.
func (e *engine) awaitHealth(service string) error {
	id, err := e.container(service)
	if err != nil {
		return err
	}
	return eventually(service+" is healthy", func() bool {
		health, err := e.docker("inspect", "--format", "{{.State.Health.Status}}", id)
		return err == nil && strings.TrimSpace(health) == "healthy"
	})
}

// publish is a line of docker-compose.yml for a port of this machine's loopback; an empty
// one is any.
func publish(port string, of int) string { return fmt.Sprintf(`"127.0.0.1:%s:%d"`, port, of) }

// one runs the single Snip.
func (e *engine) one(t *testing.T) error {
	port, operator := freePort(t), freePort(t)
	ports := []string{`"8080:8080"`, publish(port, 8080), `"127.0.0.1:8081:8081"`, publish(operator, 8081)}
	e.configure(t, ports...)
	e.downAtEnd(t)
	if _, err := e.composed("up", "-d"); err != nil {
		return err
	}
	if err := e.awaitHealth("snip"); err != nil {
		return err
	}
	version, err := e.docker("run", "--rm", e.image, "--version")
	commit := strings.TrimSpace(e.must(t, "git", "describe", "--tags", "--always"))
	if err != nil || !strings.HasPrefix(version, "snip "+commit) {
		return fmt.Errorf("the image is %q, %w, made of %s", version, err, commit)
	}
	visitor := dockerVisitor("http://127.0.0.1:" + port)
	status, slug, err := visitor.create("", "https://example.org/kept")
	if err != nil || status != http.StatusCreated {
		return fmt.Errorf("a creation is answered with %d, %w", status, err)
	}

	// The operator's page is reached from this machine, with the token of the volume.
	id, err := e.container("snip")
	if err != nil {
		return err
	}
	archive, err := e.docker("cp", id+":/data/snip.db.admin-token", "-")
	if err != nil {
		return err
	}
	files := tar.NewReader(strings.NewReader(archive))
	if _, err := files.Next(); err != nil {
		return err
	}
	token, err := io.ReadAll(files)
	if err != nil {
		return err
	}
	if err := e.asOperator(operator, string(token)); err != nil {
		return err
	}

	// An alert goes out over TLS, to a server whose certificate the image trusts. A
	// changed setting makes another container, on the same volume.
	gateway, err := e.docker("inspect", "--format", "{{range .NetworkSettings.Networks}}{{.Gateway}}{{end}}", id)
	if err != nil {
		return err
	}
	gateway = strings.TrimSpace(gateway)
	received := make(chan string, 10)
	hook := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		received <- string(body)
	}))
	certificate, err := tls.LoadX509KeyPair(e.authority.certificate, e.authority.key)
	if err != nil {
		return err
	}
	hook.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	if err := hook.Listener.Close(); err != nil {
		return err
	}
	if hook.Listener, err = net.Listen("tcp", gateway+":0"); err != nil {
		return err
	}
	hook.StartTLS()
	defer hook.Close()
	_, hookPort, _ := strings.Cut(hook.Listener.Addr().String(), ":")
	e.configure(t, append(ports, "    environment:\n      # What short links", `    extra_hosts: ["s.example:`+gateway+`"]
    environment:
      SNIP_ALERT_WEBHOOK: https://s.example:`+hookPort+`/
      SNIP_QUOTA_CLIENT: "2"
      SNIP_QUOTA_NETWORK: "2"
      SNIP_QUOTA_SERVICE: "2"
      SNIP_QUOTA_NEWCOMERS: "0"
      # What short links`)...)
	if _, err := e.composed("up", "-d"); err != nil {
		return err
	}
	if err := e.awaitHealth("snip"); err != nil {
		return err
	}
	if destination, err := visitor.follow(slug); err != nil || destination != "https://example.org/kept" {
		return fmt.Errorf("after a restart the link leads to %q, %w", destination, err)
	}
	status, _, err = visitor.create("", "https://example.org/alert")
	if err != nil || status != http.StatusCreated {
		return fmt.Errorf("a creation is answered with %d, %w", status, err)
	}
	select {
	case alert := <-received:
		if !strings.Contains(alert, `"kind":"budget"`) {
			return fmt.Errorf("the webhook got %s", alert)
		}
	case <-time.After(patience):
		return errors.New("no alert reached the webhook")
	}
	said, err := e.composed("exec", "-T", "snip", "/snip", "status")
	if err != nil || !strings.Contains(said, "2") {
		return fmt.Errorf("snip status: %q, %w", said, err)
	}
	return nil
}

// dockerVisitor returns a visitor from this machine, who takes Caddy's own certificate.
func dockerVisitor(url string) *caller {
	return &caller{url: url, http: http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// asOperator returns an error unless the operator's listener takes the token at a port
// of this machine.
func (e *engine) asOperator(port, token string) error {
	request, err := http.NewRequest(http.MethodGet, "http://localhost:"+port+"/metrics", nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(token))
	got, err := exchangeOf(http.DefaultClient, request)
	if err == nil && got.status != http.StatusOK {
		err = fmt.Errorf("the operator is answered with %d", got.status)
	}
	return err
}

// cluster runs the profile of that name, and does what docs/scaling.md tells to do when
// the primary is lost.
func (e *engine) cluster(t *testing.T) error {
	port, operators := freePort(t), []string{freePort(t), freePort(t)}
	e.configure(t, `"80:80"`, publish("", 80), `"443:443"`, publish(port, 443), `      - "443:443/udp"`+"\n", "",
		`"127.0.0.1:8081:8081"`, publish(operators[0], 8081), `"127.0.0.1:8082:8081"`, publish(operators[1], 8081))
	e.downAtEnd(t)
	secrets := filepath.Join(e.dir, "cluster/secrets")
	if err := os.Mkdir(secrets, 0o700); err != nil {
		return err
	}
	for name, secret := range composeSecrets {
		if err := os.WriteFile(filepath.Join(secrets, name), []byte(secret+"\n"), 0o644); err != nil {
			return err
		}
	}
	if _, err := e.composed("--profile", "cluster", "up", "-d", "caddy"); err != nil {
		return err
	}
	visitor := dockerVisitor("https://localhost:" + port)
	made := map[string]string{}
	create := func(name string) error {
		destination := "https://example.org/" + name
		return eventually("a creation: "+name, func() bool {
			status, slug, err := visitor.create("", destination)
			if err != nil || status != http.StatusCreated {
				return false
			}
			made[slug] = destination
			return true
		})
	}
	follow := func() error {
		for slug, want := range made {
			if got, err := visitor.follow(slug); err != nil || got != want {
				return fmt.Errorf("/%s leads to %q, %w", slug, got, err)
			}
		}
		return nil
	}
	synchronous := func(on, standby string) error {
		return eventually(on+" waits for "+standby, func() bool {
			names, err := e.composed("exec", "-T", on, "psql", "-U", "postgres", "-tAc",
				"SELECT application_name FROM pg_stat_replication WHERE sync_state = 'sync'")
			return err == nil && strings.TrimSpace(names) == standby
		})
	}
	followOften := func() error { // so that both servers have the links in memory
		for range 20 {
			if err := follow(); err != nil {
				return err
			}
		}
		return nil
	}
	steps := []func() error{
		func() error { return create("first") },
		func() error { return synchronous("primary", "standby") },
		func() error { return e.asOperator(operators[0], replicaToken) },
		func() error { return e.asOperator(operators[1], replicaToken) },
		e.secretsApart,
		followOften,
		func() error {
			id, err := e.container("primary")
			if err == nil {
				_, err = e.docker("kill", id)
			}
			return err
		},
		follow,
		func() error {
			return e.each([]string{"--profile", "cluster", "rm", "-sf", "primary"},
				[]string{"exec", "-T", "standby", "pg_ctl", "promote"})
		},
		func() error { return create("promoted") },
		func() error {
			volumes, err := e.docker("volume", "ls", "-q", "--filter", "name=primary")
			if err == nil {
				_, err = e.docker("volume", "rm", strings.TrimSpace(volumes))
			}
			return err
		},
		func() error {
			return os.WriteFile(filepath.Join(e.dir, ".env"), []byte("SNIP_PRIMARY_FOLLOWS=standby\n"), 0o644)
		},
		func() error {
			return e.each([]string{"--profile", "cluster", "up", "-d", "--no-deps", "primary"},
				[]string{"exec", "-T", "standby", "psql", "-U", "postgres",
					"-c", "ALTER SYSTEM SET synchronous_standby_names = 'FIRST 1 (primary)'", "-c", "SELECT pg_reload_conf()"})
		},
		func() error { return synchronous("standby", "primary") },
		func() error { return create("whole-again") },
		follow,
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// each runs commands of docker compose.
func (e *engine) each(commands ...[]string) error {
	for _, args := range commands {
		if _, err := e.composed(args...); err != nil {
			return err
		}
	}
	return nil
}

// secretsApart returns an error where a container's mounts have a secret that it does
// not use, or its environment has any.
func (e *engine) secretsApart() error {
	for service, want := range map[string]int{"snip-1": 2, "snip-2": 2, "primary": 3, "standby": 1, "caddy": 0} {
		id, err := e.container(service)
		if err != nil {
			return err
		}
		text, err := e.docker("inspect", id)
		if err != nil {
			return err
		}
		var found []struct {
			Mounts []struct{ Destination string }
		}
		if err := json.Unmarshal([]byte(text), &found); err != nil {
			return err
		}
		secrets := 0
		for _, mount := range found[0].Mounts {
			if strings.HasPrefix(mount.Destination, secretsAt) {
				secrets++
			}
		}
		if secrets != want {
			return fmt.Errorf("%s has %d secrets, want %d", service, secrets, want)
		}
		for name, secret := range composeSecrets {
			if strings.Contains(text, secret) {
				return fmt.Errorf("docker inspect shows the secret %s of %s", name, service)
			}
		}
	}
	return nil
}
