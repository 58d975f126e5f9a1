package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"snip/quota/pgquota/pgtest"
)

// TestComposeCluster runs what the profile of that name has, in Debian's PostgreSQL and
// Caddy: only addresses are other ones, and the certificate. It loses a Snip, then the
// primary, and gets a standby again as docs/scaling.md tells.
func TestComposeCluster(t *testing.T) {
	t.Parallel()
	withinOneDay(t, func() error { return composeCluster(t) })
}

func composeCluster(t *testing.T) error {
	c := &cluster{composed: readCompose(t, composeValues), bin: pgtest.Programs(t), ports: map[string]string{"primary": freePort(t), "standby": freePort(t)}}
	f, caddy := newFront(t, "caddy", "/usr/bin")
	primary, standby := c.database(t, "primary", ""), c.database(t, "standby", "primary")
	if err := primary.awaitStandby("standby"); err != nil {
		return err
	}

	proxy := c.Services["snip-1"].Environment["SNIP_TRUSTED_PROXIES"]
	if at, err := c.Services["caddy"].fixedAddress("cluster"); err != nil || at.String() != proxy {
		return fmt.Errorf("Snip trusts %s, and Caddy is at %v, %w", proxy, at, err)
	}
	snips := []*process{c.snip(t, "snip-1"), c.snip(t, "snip-2")}
	c.front(t, f, caddy, snips)
	if err := primary.keepsRolesApart(); err != nil {
		return err
	}
	behind := func(from string) *caller { return &caller{url: "https://s.example", http: *f.visitor(t, from)} }
	one, other := behind("127.0.0.2"), behind("127.0.0.3")

	// Clients are told apart behind the proxy, and counted over both servers.
	acknowledged := map[string]string{}
	create := func(c *caller, destination string) error {
		status, slug, err := c.create("", destination)
		if err == nil && status == http.StatusCreated {
			acknowledged[slug] = destination
			return nil
		}
		return fmt.Errorf("a creation is answered with %d, %w", status, err)
	}
	for i := range 3 {
		if err := create(one, fmt.Sprintf("https://example.org/%d", i)); err != nil {
			return err
		}
	}
	for _, p := range snips {
		for from, want := range map[string]string{"127.0.0.2": `"used":3`, "127.0.0.3": `"used":0`} {
			if body, err := allowanceOf(p, from); err != nil || !strings.Contains(body, want) {
				return fmt.Errorf("%s has %s, %w, want %s", from, body, err, want)
			}
		}
	}
	follow := func() error {
		for slug, destination := range acknowledged {
			if got, err := other.follow(slug); err != nil || got != destination {
				return fmt.Errorf("/%s leads to %q, %w", slug, got, err)
			}
		}
		return nil
	}

	snips[0].kill()
	for range 20 {
		if err := follow(); err != nil {
			return fmt.Errorf("without one of the two: %w", err)
		}
	}
	if err := create(other, "https://example.org/one-left"); err != nil {
		return fmt.Errorf("without one of the two: %w", err)
	}
	if err := follow(); err != nil {
		return err
	}

	primary.kill()
	if err := follow(); err != nil {
		return fmt.Errorf("without the primary: %w", err)
	}
	if out, err := standby.command("pg_ctl", "promote"); err != nil {
		return fmt.Errorf("promote: %w:\n%s", err, out)
	}
	if err := eventually("a creation after the promotion", func() bool { return create(one, "https://example.org/promoted") == nil }); err != nil {
		return err
	}
	if err := os.RemoveAll(primary.data); err != nil {
		return err
	}
	c.database(t, "primary", "standby")
	if err := standby.do(`ALTER SYSTEM SET synchronous_standby_names = 'FIRST 1 (primary)'`, `SELECT pg_reload_conf()`); err != nil {
		return err
	}
	if err := standby.awaitStandby("primary"); err != nil {
		return err
	}
	if err := create(one, "https://example.org/whole-again"); err != nil {
		return err
	}
	return follow()
}

func allowanceOf(p *process, client string) (string, error) {
	request, err := http.NewRequest(http.MethodGet, p.url+"/api/quota", nil)
	if err != nil {
		return "", err
	}
	request.Header.Set("X-Forwarded-For", client)
	got, err := exchangeOf(http.DefaultClient, request)
	return got.body, err
}

// cluster is the services of the profile.
type cluster struct {
	composed
	bin   string
	ports map[string]string // of the databases, by service
}

// put writes the secrets of a service to a folder, and returns it with a slash.
func (c *cluster) put(t *testing.T, service, dir string) string {
	t.Helper()
	for _, name := range c.Services[service].Secrets {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(composeSecrets[name]+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir + "/"
}

// snip starts a service of Snip's.
func (c *cluster) snip(t *testing.T, name string) *process {
	t.Helper()
	env := []string{"SNIP_THROTTLE_EVERY=0"} // which is not what is tried
	secrets := c.put(t, name, t.TempDir())
	for variable, value := range c.Services[name].Environment {
		switch variable {
		case "SNIP_STORE":
			value = edit(t, value, "primary,standby", fmt.Sprintf("127.0.0.1:%s,127.0.0.1:%s", c.ports["primary"], c.ports["standby"]))
		case "SNIP_TRUSTED_PROXIES":
			value = "127.0.0.1"
		case "SNIP_ADMIN_LISTEN":
			continue // startProcess takes a free port
		}
		env = append(env, variable+"="+strings.ReplaceAll(value, secretsAt, secrets))
	}
	p, err := startProcess(t.TempDir(), env)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	return p
}

// composedDatabase is a service of PostgreSQL's.
type composedDatabase struct {
	*process
	data, url, port string
	env             []string
	as              *syscall.SysProcAttr
}

// database starts a service that follows another, or none.
func (c *cluster) database(t *testing.T, name, follow string) *composedDatabase {
	t.Helper()
	service := c.Services[name]
	dir, err := os.MkdirTemp("", "pg") // short, for the sockets in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	d := &composedDatabase{data: filepath.Join(dir, "data"), as: &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT}}
	d.url = (&url.URL{Scheme: "postgres", User: url.User("postgres"), Path: "snip", RawQuery: url.Values{"host": {dir}, "port": {c.ports[name]}}.Encode()}).String()
	d.port = c.ports[name]
	secrets := c.put(t, name, dir)
	for file, path := range map[string]string{
		"docker-entrypoint.sh": "testdata/docker/docker-entrypoint.sh",
		"database.sh":          "../../cluster/database.sh",
		"init.sh":              "../../cluster/init.sh",
	} {
		text := strings.ReplaceAll(textOf(t, path), secretsAt, secrets)
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if d.as.Credential, err = pgtest.Give(dir); err != nil {
		t.Fatal(err)
	}
	settings := maps.Clone(service.Environment)
	if settings["FOLLOW"] != follow && name != "primary" {
		t.Fatalf("%s follows %q", name, settings["FOLLOW"])
	}
	settings["PGDATA"], settings["FOLLOW"] = d.data, ""
	if follow != "" {
		settings["FOLLOW"], settings["PGPORT"] = "127.0.0.1", c.ports[follow]
	}
	settings["SOCKETS"], settings["OWN_PORT"], settings["INIT"] = dir, c.ports[name], filepath.Join(dir, "init.sh")
	settings["PATH"] = dir + ":" + c.bin + ":/usr/bin:/bin"
	for variable, value := range settings {
		d.env = append(d.env, variable+"="+strings.ReplaceAll(value, secretsAt, secrets))
	}
	script := edit(t, strings.Join(service.Entrypoint, " "), "/cluster/database.sh", filepath.Join(dir, "database.sh"))
	args := append(strings.Fields(script)[1:], service.Command...)
	args = append(args, "-c", "listen_addresses=127.0.0.1", "-c", "port="+c.ports[name], "-c", "unix_socket_directories="+dir, "-c", "fsync=off")
	cmd := exec.Command(strings.Fields(script)[0], args...)
	cmd.SysProcAttr = d.as
	if d.process, err = launch(cmd, dir, d.env); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		d.signal(syscall.SIGQUIT)
		<-d.ended
	})
	err = eventually(name+" serves", func() bool {
		select {
		case <-d.ended:
			t.Fatalf("%s has ended: %v\n%s", name, d.err, d.log())
		default:
		}
		return d.overNetwork("snip", "", `SELECT 1`) == nil
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, d.log())
	}
	return d
}

// command runs one of PostgreSQL's in the service.
func (d *composedDatabase) command(name string, args ...string) (string, error) {
	cmd := exec.Command("sh", append([]string{"-c", `exec "$0" "$@"`, name}, args...)...)
	cmd.Env, cmd.SysProcAttr = d.env, d.as
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// do runs statements, each in a transaction of its own.
func (d *composedDatabase) do(statements ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, d.url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}

// overNetwork runs a statement as the role, with the password of its secret.
func (d *composedDatabase) overNetwork(role, options, sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	secret := cmp.Or(composeSecrets[role], composeSecrets["superuser"])
	at := url.URL{Scheme: "postgres", User: url.UserPassword(role, secret), Host: "127.0.0.1:" + d.port, Path: "snip", RawQuery: options}
	conn, err := pgx.Connect(ctx, at.String())
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.PgConn().Exec(ctx, sql).ReadAll()
	return err
}

// keepsRolesApart returns an error where a password does more than its holder needs.
func (d *composedDatabase) keepsRolesApart() error {
	const refused, unknown = "SQLSTATE 42501", "SQLSTATE 28000" // by privilege, by pg_hba.conf
	for _, row := range []struct{ role, options, sql, problem string }{
		{"snip", "", `SELECT count(*) FROM links`, ""},
		{"snip", "", `COPY links FROM PROGRAM 'true'`, refused},
		{"snip", "", `COPY links TO PROGRAM 'true'`, refused},
		{"snip", "", `COPY links TO '/tmp/links'`, refused},
		{"snip", "", `SELECT pg_read_file('postgresql.conf')`, refused},
		{"snip", "", `SELECT rolpassword FROM pg_authid`, refused},
		{"snip", "", `ALTER ROLE snip SUPERUSER`, refused},
		{"snip", "", `CREATE ROLE another`, refused},
		{"snip", "", `CREATE SCHEMA another`, refused},
		{"snip", "", `CREATE EXTENSION pgcrypto`, refused},
		{"snip", "", `DROP SCHEMA public CASCADE`, refused},
		{"snip", "", `ALTER DATABASE snip SET work_mem = '1GB'`, refused},
		{"snip", "", `SELECT pg_create_physical_replication_slot('s')`, refused},
		{"snip", "dbname=postgres", `SELECT 1`, unknown},
		{"snip", "replication=true", `IDENTIFY_SYSTEM`, unknown},
		{"replicator", "", `SELECT 1`, unknown},
		{"replicator", "replication=true", `IDENTIFY_SYSTEM`, ""},
		{"postgres", "", `SELECT 1`, unknown},
	} {
		err := d.overNetwork(row.role, row.options, row.sql)
		if (err == nil) != (row.problem == "") || err != nil && !strings.Contains(err.Error(), row.problem) {
			return fmt.Errorf("%s with %q: %s: %w, want %q", row.role, row.options, row.sql, err, row.problem)
		}
	}
	return nil
}

// awaitStandby returns when commits wait for the standby of that name.
func (d *composedDatabase) awaitStandby(name string) error {
	return eventually(name+" is waited for", func() bool {
		return d.do(`SELECT 1 / count(*) FROM pg_stat_replication WHERE sync_state = 'sync' AND application_name = '`+name+`'`) == nil
	})
}

// front starts Caddy with the cluster's file before the Snips.
func (c *cluster) front(t *testing.T, f *front, program string, snips []*process) {
	t.Helper()
	text := edit(t, textOf(t, "../../cluster/Caddyfile"),
		"snip-1:8080 snip-2:8080", snips[0].addr+" "+snips[1].addr,
		"{$SNIP_HOST:localhost} {", fmt.Sprintf("{$SNIP_HOST:localhost} {\n\ttls %s %s", f.certificate, f.key))
	cmd := exec.Command(program, "run", "--adapter", "caddyfile", "--config", f.write(t, "Caddyfile", f.caddyOptions()+text))
	var err error
	if f.process, err = launch(cmd, f.dir, []string{"HOME=" + f.dir, "SNIP_HOST=" + c.Services["caddy"].Environment["SNIP_HOST"]}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.process.kill)
	if _, err := f.await("serving initial configuration"); err != nil {
		t.Fatal(err)
	}
}
