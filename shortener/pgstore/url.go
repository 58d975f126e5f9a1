package pgstore

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// CheckURL returns why [Open] could not use a URL, whatever the database: the error
// repeats nothing of the URL, which may hold a password. Files that it names are read.
func CheckURL(url string) error {
	_, err := configure(url, Options{})
	if wrong, ok := errors.AsType[*pgconn.ParseConfigError](err); ok {
		// It begins with the URL in such quotes, without what looks like a password.
		text := wrong.Error()
		return errors.New(text[strings.LastIndex(text, "`: ")+len("`: "):])
	}
	return err
}

// MayPass reports whether an error of [Open] may be gone the next time: no server was
// reached, or none that takes writes, or it is still starting.
func MayPass(err error) bool { return mayPass(err) }
