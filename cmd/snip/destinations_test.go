package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
)

// TestRealDestinations sends every real destination through the program, across a
// restart, and follows each link back to the same bytes.
func TestRealDestinations(t *testing.T) {
	t.Parallel()
	destinations := realDestinations(t)
	dir := t.TempDir()
	off := []string{
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
		if err == nil && location != destinations[i] {
			err = fmt.Errorf("/%s leads to %q, want %q", slugs[i], location, destinations[i])
		}
		return err
	})
}

// TestServiceDay sends the same destinations from 1,200 clients behind a listed
// proxy, with the default quota: a hundred busy clients first, then everyone.
func TestServiceDay(t *testing.T) {
	t.Parallel()
	destinations := realDestinations(t)
	withinOneDay(func() {
		dir := t.TempDir()
		p := start(t, dir, "--throttle-every=0", "--trusted-proxies=127.0.0.1/32")
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
			if err != nil {
				t.Fatal(err)
			}
			switch status {
			case http.StatusCreated:
				if made >= 900 && byNetwork[network] > 0 {
					t.Errorf("link %d was not the first of its network", made+1)
				}
				made++
				byClient[client]++
				byNetwork[network]++
			case http.StatusTooManyRequests:
			default:
				t.Fatalf("status %d", status)
			}
		}
		if made != 1000 {
			t.Errorf("%d links, want 1,000", made)
		}
		for client, n := range byClient {
			if n > 50 {
				t.Errorf("client %d made %d links", client, n)
			}
		}
		for network, n := range byNetwork {
			if n > 250 {
				t.Errorf("network %d made %d links", network, n)
			}
		}
		if err := p.stop(); err != nil {
			t.Fatal(err)
		}
		if links := len(audit(t, filepath.Join(dir, "snip.db")).slugs); links != made {
			t.Errorf("%d links in the file, %d were made", links, made)
		}
	})
}
