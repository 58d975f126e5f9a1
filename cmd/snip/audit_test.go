package main

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"snip/quota"
	"snip/shortener"
	"snip/shortener/boltstore"
)

// fileContent is what a data file holds once its process has ended.
type fileContent struct {
	slugs map[string]bool
	links map[string]shortener.Link        // by slug, as the program reads them
	used  map[string]map[quota.Level]int64 // what the counters of each day and level add up to
}

// readFile reads a data file, and its error holds all that snip check says is
// wrong with it.
func readFile(path string) (content fileContent, err error) {
	content = fileContent{
		slugs: map[string]bool{}, links: map[string]shortener.Link{}, used: map[string]map[quota.Level]int64{},
	}
	report, err := boltstore.Check(path)
	if err == nil {
		err = report.Err()
	}
	if err != nil {
		return content, err
	}
	for _, day := range report.Days {
		content.used[day.Day] = day.Used
	}
	store, err := boltstore.Open(path, boltstore.Options{})
	if err != nil {
		return content, err
	}
	for mark := ""; ; {
		links, next, err := store.Scan(context.Background(), mark, 1000)
		if err != nil {
			return content, errors.Join(err, store.Close())
		}
		for _, m := range links {
			content.slugs[string(m.Link.Slug)] = true
			content.links[string(m.Link.Slug)] = m.Link
		}
		if mark = next; mark == "" {
			break
		}
	}
	if int64(len(content.links)) != report.Links {
		err = fmt.Errorf("%d links were checked, and %d can be read", report.Links, len(content.links))
	}
	return content, errors.Join(err, store.Close())
}

// counted returns an error unless every level has counted exactly the links of
// each day. forgotten says of how many links the counters were swept, by day.
func (c fileContent) counted(forgotten map[string]int64) error {
	made := map[string]int64{}
	for day := range c.used {
		made[day] = 0
	}
	for _, link := range c.links {
		if link.Day != "" { // else it was imported
			made[link.Day]++
		}
	}
	for day, links := range made {
		links -= forgotten[day]
		for _, level := range []quota.Level{quota.LevelService, quota.LevelNetwork, quota.LevelClient} {
			if used := c.used[day][level]; used != links {
				return fmt.Errorf("level %s has counted %d on %s, but there are %d links to count", level, used, day, links)
			}
		}
	}
	return nil
}

// holds returns an error unless every link that was acknowledged is there and
// leads to its destination, byte for byte.
func (c fileContent) holds(acknowledged map[string]string) error {
	for slug, destination := range acknowledged {
		link, there := c.links[slug]
		if !there {
			return fmt.Errorf("the acknowledged link %s is gone", slug)
		}
		if link.Destination != destination {
			return fmt.Errorf("%s leads to %.80q, want %.80q", slug, link.Destination, destination)
		}
	}
	return nil
}

// audit asserts all that must be true of a data file, whatever happened to the
// process: it is sound, and every level has counted exactly the links there are.
func audit(t *testing.T, path string) fileContent {
	t.Helper()
	content, err := readFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := content.counted(nil); err != nil {
		t.Error(err)
	}
	return content
}
