package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// adminTokenSuffix names the file beside the data file that holds the admin token
// where no setting does.
const adminTokenSuffix = ".admin-token"

// needAdminToken returns an error where an operator is to be listened to, and there is
// no file beside which a token could lie.
func needAdminToken(r *reader, listen string, store location) error {
	if listen == "" || store.database == "" || r.isSet("admin-token") || r.isSet("admin-token-file") {
		return nil
	}
	return errors.New("--admin-token or --admin-token-file is needed where the data is in a database, or --admin-listen off; " +
		"openssl rand -hex 16 makes a token, which all servers on the database get")
}

// ensureAdminToken returns the admin token: the setting, or what the file holds,
// which is made at the first start and readable by its owner only.
func ensureAdminToken(setting, store string) (string, error) {
	if setting != "" {
		return setting, nil
	}
	path := store + adminTokenSuffix
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return readAdminToken("", store)
	}
	if err != nil {
		return "", fmt.Errorf("the admin token cannot be kept: %w; give one with --admin-token, or turn the listener off with --admin-listen off", err)
	}
	token := rand.Text()
	_, err = file.WriteString(token + "\n")
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return "", errors.Join(fmt.Errorf("the admin token cannot be kept: %w", err), os.Remove(path))
	}
	return token, nil
}

// readAdminToken returns the admin token of a server that has been started.
func readAdminToken(setting, store string) (string, error) {
	if setting != "" {
		return setting, nil
	}
	path := store + adminTokenSuffix
	info, err := os.Stat(path)
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("%s may be read by others (mode %04o): chmod 600 it, and replace it if they may have", path, info.Mode().Perm())
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("the admin token cannot be read: %w; start the server first, or name its --store or --admin-token", err)
	}
	token := strings.TrimSpace(string(raw))
	if err := checkAdminToken(token); err != nil {
		return "", fmt.Errorf("%s: %w: remove it, and the server makes another at its next start", path, err)
	}
	return token, nil
}
