package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestSecretFiles reads each secret from a file as editors and programs end them, and
// each password of a database as PostgreSQL is shown it.
func TestSecretFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "secret")
	read := func(text string, args ...string) (config, error) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return configOf(t, nil, args...)
	}
	for _, end := range []string{"", "\n", "\r\n", "\n\n"} {
		c, err := read("0123456789abcdef"+end, "--admin-token-file", path)
		if err != nil || c.adminToken != "0123456789abcdef" {
			t.Errorf("the token with %q at its end is %q, %v", end, c.adminToken, err)
		}
		c, err = read("https://hooks.example/x#topic"+end, "--alert-webhook-file", path)
		if err != nil || c.webhook.String() != "https://hooks.example/x#topic" {
			t.Errorf("the webhook with %q at its end is %v, %v", end, c.webhook, err)
		}
		c, err = read("a-key"+end, "--reputation-key-file", path)
		if err != nil || c.checks == nil {
			t.Errorf("the key with %q at its end: %v", end, err)
		}
	}

	const password = " %41+&=@:/?#'ü "
	for _, store := range []string{
		"postgres://snip@db/snip", "postgres://db/snip?user=snip", "postgresql://snip@a:5432,b:5433/snip?target_session_attrs=read-write&sslmode=disable",
	} {
		c, err := read(password+"\n", "--store", store, "--store-password-file", path, "--admin-listen=off")
		if err != nil {
			t.Errorf("%s: %v", store, err)
			continue
		}
		pg, err := pgx.ParseConfig(c.store.database)
		if err != nil || pg.Password != password || pg.User != "snip" || pg.Database != "snip" {
			t.Errorf("%s: %v: user %q, password %q", store, err, pg.User, pg.Password)
		}
		if shown := c.store.String(); strings.Contains(shown, "password") {
			t.Errorf("%s is shown as %s", store, shown)
		}
	}

	for _, text := range []string{"", "\n", " \t\r\n", "secret\nsecret", "se\x00cret"} {
		for _, args := range [][]string{
			{"--admin-token-file", path}, {"--alert-webhook-file", path}, {"--reputation-key-file", path},
			{"--store=postgres://snip@db/snip", "--admin-listen=off", "--store-password-file", path},
		} {
			if _, err := read(text, args...); err == nil || strings.Contains(err.Error(), "cret\n") || !strings.Contains(err.Error(), args[len(args)-2]) {
				t.Errorf("%v with %q: %v", args, text, err)
			}
		}
	}
}
