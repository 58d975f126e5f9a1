package boltstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"snip/quota"
	"snip/shortener"
)

func (c *checker) links(bucket *bbolt.Bucket) error {
	return bucket.ForEach(func(key, raw []byte) error {
		link, err := c.link(key, raw)
		if err == nil {
			err = c.judge(link)
		}
		if err != nil {
			c.problem("link under the key %x: %v", key, err)
			return nil
		}
		c.Links++
		switch {
		case link.Deleted:
			c.Deleted++
		case link.TakenDown != "":
			c.TakenDown++
		}
		made := c.made[link.Day]
		if made == nil {
			return nil
		}
		made.all++
		made.by[link.Creator]++
		if link.Key != 0 {
			made.keys++
		}
		return nil
	})
}

// link decodes a record and returns an error where it lies under another's key.
func (c *checker) link(key, raw []byte) (shortener.Link, error) {
	link, err := decodeLink(raw)
	if err != nil {
		return shortener.Link{}, err
	}
	if c.Format == 1 {
		link.Slug = shortener.Slug(key)
	} else if !bytes.Equal(key, c.numbers.key(link.Slug)) {
		return shortener.Link{}, fmt.Errorf("it is that of %q", link.Slug)
	}
	return link, nil
}

// judge returns what no link can be.
func (c *checker) judge(link shortener.Link) error {
	if _, ok := shortener.ParseSlug(string(link.Slug)); !ok {
		return fmt.Errorf("%q is no slug", link.Slug)
	}
	if link.Day != "" {
		if _, err := quota.DayBefore(link.Day); err != nil {
			return err
		}
	}
	switch {
	case link.Deleted && link != link.Tombstone():
		return fmt.Errorf("%s was deleted, and more than that is left", link.Slug)
	case !link.Deleted && link.Destination == "":
		return fmt.Errorf("%s leads nowhere", link.Slug)
	case link.MaxVisits < 0:
		return fmt.Errorf("%s may have %d visits", link.Slug, link.MaxVisits)
	case link.Key != 0 && !link.Deleted && !has(c.tx.Bucket(keyLinksName), keyLinkOf(link)):
		return fmt.Errorf("%s is not listed among the links of key %s", link.Slug, link.Key)
	}
	return nil
}

// has reports whether a key is there, whatever its value.
func has(bucket *bbolt.Bucket, key []byte) bool {
	if bucket == nil {
		return false
	}
	at, _ := bucket.Cursor().Seek(key)
	return bytes.Equal(at, key)
}

// living returns the link that other records under its key are about.
func (c *checker) living(key []byte) (shortener.Link, error) {
	raw := c.tx.Bucket(linksName).Get(key)
	if raw == nil {
		return shortener.Link{}, shortener.ErrNotFound
	}
	link, err := c.link(key, raw)
	if err == nil && link.Deleted {
		err = shortener.ErrGone
	}
	return link, err
}

func (c *checker) visits(bucket *bbolt.Bucket) error {
	return bucket.ForEach(func(key, raw []byte) error {
		_, err := c.living(key)
		if err == nil && (len(raw) != 8 || int64(binary.BigEndian.Uint64(raw)) < 0) {
			err = fmt.Errorf("%x is no number of them", raw)
		}
		if err != nil {
			c.problem("counted visits under the key %x: %v", key, err)
			return nil
		}
		c.Limited++
		return nil
	})
}

func (c *checker) clicks(bucket *bbolt.Bucket) error {
	return bucket.ForEach(func(key, raw []byte) error {
		_, err := c.living(key)
		if err == nil && raw == nil {
			err = errors.New("they are a bucket")
		}
		if err == nil {
			_, err = decodeVisits(raw)
		}
		if err != nil {
			c.problem("statistics under the key %x: %v", key, err)
			return nil
		}
		c.Visited++
		return nil
	})
}

func (c *checker) keyLinks(bucket *bbolt.Bucket) error {
	const ids = 8 + 8 // the key's, and the instant
	return bucket.ForEach(func(at, _ []byte) error {
		if len(at) <= ids {
			c.problem("list of a key's links: %x is no entry", at)
			return nil
		}
		slug := shortener.Slug(at[ids:])
		link, err := c.living(c.numbers.key(slug))
		if err == nil && !bytes.Equal(at, keyLinkOf(link)) {
			err = errors.New("it is not that key's")
		}
		if err != nil {
			c.problem("list of a key's links: %q: %v", slug, err)
		}
		return nil
	})
}

func (c *checker) entries(bucket *bbolt.Bucket) error {
	c.Entries = map[shortener.EntryKind]int64{}
	return bucket.ForEach(func(at, value []byte) error {
		kind, name, ok := bytes.Cut(at, []byte{0})
		if !ok || value == nil {
			c.problem("%q is nothing that an operator can set", at)
			return nil
		}
		entry := shortener.Entry{Kind: shortener.EntryKind(kind), Name: string(name), Value: string(value)}
		if err := entry.Check(); err != nil {
			c.problem("%s %q: %v", kind, name, err)
			return nil
		}
		c.Entries[entry.Kind]++
		return nil
	})
}

func (c *checker) acts(bucket *bbolt.Bucket) error {
	err := bucket.ForEach(func(at, raw []byte) error {
		c.Acts++
		line, err := decodeAuditLine(at, raw)
		switch {
		case err != nil:
			c.problem("%v", err)
		case line.Number != uint64(c.Acts):
			c.problem("audit line %d comes in the place of line %d", line.Number, c.Acts)
			c.Acts = int64(line.Number)
		}
		return nil
	})
	if last := bucket.Sequence(); err == nil && last != uint64(c.Acts) {
		c.problem("the audit log ends at line %d, and %d were written", c.Acts, last)
	}
	return err
}

func (c *checker) notices(bucket *bbolt.Bucket) error {
	return bucket.ForEach(func(id, raw []byte) error {
		if len(raw) == 0 { // it was delivered
			return nil
		}
		if _, err := decodeNotice(string(id), raw); err != nil {
			c.problem("%v", err)
		}
		return nil
	})
}

func (c *checker) history(bucket *bbolt.Bucket) error {
	return bucket.ForEach(func(day, raw []byte) error {
		if _, err := decodeDay(string(day), raw); err != nil {
			c.problem("%v", err)
		}
		return nil
	})
}

func (c *checker) answers(bucket *bbolt.Bucket) error {
	return bucket.ForEach(func(key, raw []byte) error {
		ref, err := refOf(key)
		if err == nil {
			_, err = decodeAnswer(ref, raw)
		}
		if err != nil {
			c.problem("answer under the key %x: %v", key, err)
			return nil
		}
		c.Answers++
		return nil
	})
}
