package admin

import (
	"context"
	"time"

	"snip/quota"
	"snip/shortener"
)

// What the page and the API do for an operator, with its line in the log.

func (s *server) block(ctx context.Context, host, note string) (shortener.Block, error) {
	b, err := s.service.AddBlock(ctx, host, note)
	if err == nil {
		s.log.Info("a host was blocked", "host", b.Host)
	}
	return b, err
}

func (s *server) unblock(ctx context.Context, host, note string) error {
	err := s.service.RemoveBlock(ctx, host, note)
	if err == nil {
		s.log.Info("a host was unblocked", "host", host)
	}
	return err
}

func (s *server) makeKey(ctx context.Context, name string, daily int64) (shortener.Key, shortener.Token, error) {
	made, text, err := s.service.CreateKey(ctx, name, daily)
	if err == nil {
		s.log.Info("a key was made", "name", made.Name, "id", made.ID.String(), "daily", made.Daily)
	}
	return made, text, err
}

func (s *server) limitKey(ctx context.Context, name string, id quota.KeyID, daily int64) (shortener.Key, error) {
	changed, err := s.service.ChangeKey(ctx, name, id, daily)
	if err == nil {
		s.log.Info("a key was changed", "name", changed.Name, "id", changed.ID.String(), "daily", changed.Daily)
	}
	return changed, err
}

func (s *server) endKey(ctx context.Context, name string, id quota.KeyID) error {
	err := s.service.RevokeKey(ctx, name, id)
	if err == nil {
		s.log.Info("a key was revoked", "name", name)
	}
	return err
}

// setOverride leaves out of the log whom an override is about.
func (s *server) setOverride(ctx context.Context, o shortener.Override) (shortener.Override, error) {
	set, err := s.service.PutOverride(ctx, o)
	if err == nil {
		s.log.Info("an override was set", "limit", set.Limit, "until", set.Until)
	}
	return set, err
}

func (s *server) endOverride(ctx context.Context, target string) error {
	err := s.service.RemoveOverride(ctx, target)
	if err == nil {
		s.log.Info("an override was removed")
	}
	return err
}

func (s *server) takeDown(ctx context.Context, sel shortener.Selection, reason, note string) (int, error) {
	n, err := s.service.TakeDown(ctx, sel, reason, note)
	return s.acted("links were taken down", sel.String(), n, err)
}

func (s *server) bringBack(ctx context.Context, sel shortener.Selection, note string) (int, error) {
	n, err := s.service.BringBack(ctx, sel, note)
	return s.acted("links were brought back", sel.String(), n, err)
}

func (s *server) remove(ctx context.Context, slug shortener.Slug, note string) (int, error) {
	if err := s.service.Remove(ctx, slug, note); err != nil {
		return 0, err
	}
	return s.acted("a link was deleted", string(slug), 1, nil)
}

// recordTime bounds how long the page and a backup wait for their line in the audit log.
const recordTime = 2 * time.Second

// record writes down what goes on without its line, too: signing in and a backup are
// wanted most when nothing can be written. Then the line is in the log instead.
func (s *server) record(ctx context.Context, action string) {
	ctx, cancel := context.WithTimeout(ctx, recordTime)
	defer cancel()
	if err := s.service.Record(ctx, action, ""); err != nil {
		s.log.Error("an act is missing in the audit log", "action", action, "err", err)
	}
}

// acted logs what was done to links, also where it could not be done to all. It
// returns their number.
func (s *server) acted(what, target string, n int, err error) (int, error) {
	if err == nil || n > 0 {
		s.log.Info(what, "target", target, "links", n)
	}
	return n, err
}
