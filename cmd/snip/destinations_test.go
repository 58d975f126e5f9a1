package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"testing"

	"snip/shortener"
)

// TestRealDestinations sends every real destination through the program, across a
// restart, and follows each link back to it.
func TestRealDestinations(t *testing.T) {
	t.Parallel()
	destinations := realDestinations(t)
	dir := t.TempDir()
	off := []string{"--allow-shorteners",
		"--throttle-every=0", "--quota-client=0", "--quota-network=0", "--quota-service=0", "--quota-newcomers=0",
	}
	slugs := make([]string, len(destinations))
	half := len(destinations) / 2
	create := func(p *process, from, to int) {
		c := newCaller(t, p)
		spread(t, to-from, func(i int) error {
			status, slug, err := c.create("", destinations[from+i])
			if err == nil && status != http.StatusCreated {
				err = fmt.Errorf("%q: status %d", destinations[from+i], status)
			}
			slugs[from+i] = slug
			return err
		})
	}
	first := start(t, dir, off...)
	create(first, 0, half)
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	second := start(t, dir, off...)
	create(second, half, len(destinations))
	c := newCaller(t, second)
	spread(t, len(destinations), func(i int) error {
		location, err := c.follow(slugs[i])
		if want := shortener.Location(destinations[i]); err == nil && location != want {
			err = fmt.Errorf("/%s leads to %q, want %q", slugs[i], location, want)
		}
		return err
	})
}

// TestServiceDay sends the same destinations from 1,200 clients behind a listed
// proxy, with the default quota: a hundred busy clients first, then everyone.
func TestServiceDay(t *testing.T) {
	t.Parallel()
	destinations := realDestinations(t)
	withinOneDay(t, func() error {
		dir := t.TempDir()
		p := start(t, dir, "--throttle-every=0", "--trusted-proxies=127.0.0.1/32", "--allow-shorteners")
		c := newCaller(t, p)
		byClient, byNetwork := map[int]int{}, map[int]int{}
		made := 0
		for i, destination := range destinations {
			client := i % 1200
			if i < 4000 {
				client = i % 100
			}
			network := client / 3 // three neighbours in each /24
			address := fmt.Sprintf("198.%d.%d.%d", 18+network>>8, network&0xff, 1+client%3)
			status, _, err := c.create(address, destination)
			switch {
			case err != nil:
				return err
			case status == http.StatusTooManyRequests:
				continue
			case status != http.StatusCreated:
				return fmt.Errorf("status %d", status)
			case made >= 900 && byNetwork[network] > 0:
				return fmt.Errorf("link %d was not the first of its network", made+1)
			}
			made++
			byClient[client]++
			byNetwork[network]++
			if byClient[client] > 50 || byNetwork[network] > 250 {
				return fmt.Errorf("client %d made %d links, its network %d", client, byClient[client], byNetwork[network])
			}
		}
		if err := p.stop(); err != nil {
			return err
		}
		if stored := len(audit(t, filepath.Join(dir, "snip.db")).slugs); made != 1000 || stored != 1000 {
			return fmt.Errorf("%d links were made and %d are in the file, want 1,000", made, stored)
		}
		return nil
	})
}
