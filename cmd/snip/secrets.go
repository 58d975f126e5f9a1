package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"unicode"
)

// readSecret is read for a setting that holds a secret. The secret may be in a file
// instead, so that it is in no command line and no environment: the setting with -file
// at the end of its name says in which.
func readSecret[T any](r *reader, flag string, parse func(string) (T, error)) T {
	file := flag + "-file"
	if !r.isSet(file) {
		return read(r, flag, parse)
	}
	if r.isSet(flag) {
		r.problems = append(r.problems, fmt.Errorf(
			"%s and %s: one of them is needed, not both", r.name(flag), r.name(file)))
	}
	return read(r, file, fromFile(parse))
}

// fromFile parses what the file at a path holds. Only the line's end is cut off, which
// editors add. No error shows what the file holds.
func fromFile[T any](parse func(string) (T, error)) func(string) (T, error) {
	return func(path string) (value T, err error) {
		raw, err := os.ReadFile(path)
		if err != nil {
			return value, fmt.Errorf("it cannot be read: %w", errors.Unwrap(err)) // the path is told anyway
		}
		text := strings.TrimRight(string(raw), "\r\n")
		if strings.TrimSpace(text) == "" {
			return value, errors.New("it is empty")
		}
		if value, err = parse(text); err != nil {
			return value, fmt.Errorf("what it holds cannot be used: %w", err)
		}
		return value, nil
	}
}

// storePasswordFile names the setting for the file with the password of the database.
const storePasswordFile = "store-password-file"

// readStore reads where the data is. The password of a database may be in a file.
func readStore(r *reader) location { return withPasswordFile(r, "store", read(r, "store", parseStore)) }

// withPasswordFile adds the password of the file that --store-password-file names to the
// database that the flag names.
func withPasswordFile(r *reader, flag string, at location) location {
	if !r.isSet(storePasswordFile) {
		return at
	}
	password := read(r, storePasswordFile, fromFile(parsePassword))
	if password == "" || at == (location{}) {
		return at // which is reported already
	}
	u, err := url.Parse(at.database)
	switch {
	case at.database == "":
		err = fmt.Errorf("%s is of no use for a data file: %s must be a postgres:// URL",
			r.name(storePasswordFile), r.name(flag))
	case err == nil && hasPassword(u):
		err = fmt.Errorf("%s holds a password, and %s names another: one of them is needed, not both",
			r.name(flag), r.name(storePasswordFile))
	}
	if err != nil {
		r.problems = append(r.problems, err)
		return location{}
	}
	// Not next to the user, whom the URL may name elsewhere. PostgreSQL reads no + as a blank.
	escaped := strings.ReplaceAll(url.QueryEscape(password), "+", "%20")
	u.RawQuery = strings.TrimPrefix(u.RawQuery+"&password="+escaped, "&")
	return location{database: u.String()}
}

func hasPassword(u *url.URL) bool {
	_, ok := u.User.Password()
	return ok || u.Query().Has("password")
}

func parsePassword(text string) (string, error) {
	if strings.ContainsFunc(text, unicode.IsControl) {
		return "", errors.New("one line without control characters is needed")
	}
	return text, nil
}
