package boltstore

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"snip/quota"
	"snip/quota/boltquota"
	"snip/shortener"
)

// Contents is what a file holds, for copying it. As long as it is open no server can
// have the file.
type Contents struct {
	db      *bbolt.DB
	tx      *bbolt.Tx
	numbers numbering
}

var _ shortener.Contents = (*Contents)(nil)

// OpenContents checks a file that nobody has open, as [Check] does, and opens it for
// reading. The error is [ErrDamaged] for one that is not sound.
func OpenContents(path string) (*Contents, Report, error) {
	found, err := checkSound(path)
	if err == nil && found.Format != format {
		err = fmt.Errorf("%s has format %d, and only %d is read: start snip on it once", path, found.Format, format)
	}
	if err != nil {
		return nil, found, err
	}
	c := &Contents{}
	if c.db, err = openBolt(path, &bbolt.Options{Timeout: lockTimeout, ReadOnly: true}); err != nil {
		return nil, found, explain(path, err)
	}
	if c.tx, err = c.db.Begin(false); err != nil {
		return nil, found, errors.Join(err, c.db.Close())
	}
	if c.numbers, err = newNumbering(c.tx.Bucket(metaName).Get(slugKeyKey)); err != nil {
		return nil, found, errors.Join(err, c.Close())
	}
	return c, found, nil
}

// Close lets go of the file.
func (c *Contents) Close() error { return errors.Join(c.tx.Rollback(), c.db.Close()) }

// ID is another one for another file, and once something was written to this one.
func (c *Contents) ID() string {
	file := sha256.Sum256(c.tx.Bucket(metaName).Get(slugKeyKey)) // which is a secret
	return fmt.Sprintf("%x/%d", file[:8], c.tx.ID())
}

// Newest implements [shortener.Contents].
func (c *Contents) Newest() (string, error) { return newestDay(c.tx) }

// each calls use with what lies in a bucket that not every file has.
func (c *Contents) each(name []byte, use func(key, raw []byte) error) error {
	b := c.tx.Bucket(name)
	if b == nil {
		return nil
	}
	return b.ForEach(use)
}

// Links implements [shortener.Contents].
func (c *Contents) Links(use func(shortener.KeptLink) error) error {
	return c.each(linksName, func(key, raw []byte) error {
		link, err := decodeLink(raw)
		if err != nil {
			return fmt.Errorf("record under the key %x: %w", key, err)
		}
		kept := shortener.KeptLink{Link: link}
		if visits := c.tx.Bucket(visitsName); visits != nil {
			if kept.Visited, err = decodeVisited(link.Slug, visits.Get(key)); err != nil {
				return err
			}
		}
		return use(kept)
	})
}

// Visits implements [shortener.Contents].
func (c *Contents) Visits(use func(shortener.KeptVisits) error) error {
	return c.each(clicksName, func(key, raw []byte) error {
		visits, err := decodeVisits(raw)
		if err != nil {
			return err
		}
		link, err := decodeLink(c.tx.Bucket(linksName).Get(key))
		if err != nil {
			return fmt.Errorf("visits under the key %x: %w", key, err)
		}
		return use(shortener.KeptVisits{Slug: link.Slug, Visits: visits})
	})
}

// Secrets implements [shortener.Contents].
func (c *Contents) Secrets(use func(shortener.KeptSecret) error) error {
	return boltquota.Secrets(c.tx, func(period string, secret quota.Secret) error {
		return use(shortener.KeptSecret{Period: period, Secret: secret})
	})
}

// Counters implements [shortener.Contents].
func (c *Contents) Counters(use func(shortener.KeptCounter) error) error {
	return boltquota.AllCounts(c.tx, func(counter quota.Counter, count quota.Count) error {
		return use(shortener.KeptCounter{Counter: counter, Count: count})
	})
}

// Reservations implements [shortener.Contents].
func (c *Contents) Reservations(use func(quota.Reservation) error) error {
	return boltquota.Reservations(c.tx, use)
}

// Answers implements [shortener.Contents].
func (c *Contents) Answers(use func(shortener.Answer) error) error {
	return c.each(answersName, func(key, raw []byte) error {
		ref, err := refOf(key)
		if err != nil {
			return err
		}
		answer, err := decodeAnswer(ref, raw)
		if err != nil {
			return err
		}
		return use(answer)
	})
}

// Entries implements [shortener.Contents].
func (c *Contents) Entries(use func(shortener.Entry) error) error {
	return c.each(operatorName, func(at, value []byte) error {
		kind, name, _ := bytes.Cut(at, []byte{0})
		return use(shortener.Entry{Kind: shortener.EntryKind(kind), Name: string(name), Value: string(value)})
	})
}

// Acts implements [shortener.Contents].
func (c *Contents) Acts(use func(shortener.AuditLine) error) error {
	return c.each(auditName, func(at, raw []byte) error {
		line, err := decodeAuditLine(at, raw)
		if err != nil {
			return err
		}
		return use(line)
	})
}

// Notices implements [shortener.Contents].
func (c *Contents) Notices(use func(shortener.KeptNotice) error) error {
	return c.each(outboxName, func(id, raw []byte) error {
		if len(raw) == 0 {
			return use(shortener.KeptNotice{Notice: shortener.Notice{ID: string(id)}, Delivered: true})
		}
		notice, err := decodeNotice(string(id), raw)
		if err != nil {
			return err
		}
		return use(shortener.KeptNotice{Notice: notice})
	})
}

// History implements [shortener.Contents].
func (c *Contents) History(use func(shortener.DayRecord) error) error {
	return c.each(historyName, func(day, raw []byte) error {
		record, err := decodeDay(string(day), raw)
		if err != nil {
			return err
		}
		return use(record)
	})
}
