package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"snip/quota"
	"snip/shortener"
)

// deed is what a form of the page does.
type deed struct {
	// asks returns a question to be answered first; nil, or an empty one, does it at
	// once.
	asks func(*server, context.Context, url.Values) (string, error)
	do   func(*server, context.Context, url.Values) (flash, error)
}

// deeds are what the page's forms do, by the ends of their paths.
func deeds() map[string]deed {
	return map[string]deed{
		"disable":         {asks: (*server).asksToDisable, do: (*server).doDisable},
		"enable":          {asks: (*server).asksToEnable, do: (*server).doEnable},
		"delete":          {asks: (*server).asksToDelete, do: (*server).doDelete},
		"block":           {do: (*server).doBlock},
		"unblock":         {do: (*server).doUnblock},
		"set-override":    {do: (*server).doSetOverride},
		"remove-override": {do: (*server).doRemoveOverride},
		"create-key":      {do: (*server).doCreateKey},
		"change-key":      {do: (*server).doChangeKey},
		"revoke-key":      {asks: (*server).asksToRevoke, do: (*server).doRevoke},
	}
}

// submit returns the handler of a form. Errors are told at the form that its field
// "form" names.
func (d deed) submit(s *server, w http.ResponseWriter, r *http.Request) error {
	one, err := s.writer(w, r)
	if err != nil {
		return err
	}
	form := r.PostForm
	var question string
	if d.asks != nil && form.Get("confirmed") == "" {
		question, err = d.asks(s, r.Context(), form)
	}
	if err == nil && question != "" {
		return s.confirm(w, r, one, question)
	}
	var said flash
	if err == nil {
		said, err = d.do(s, r.Context(), form)
	}
	if err != nil {
		status, _ := s.judge(r, err)
		v := s.view(r.Context(), form.Get("q"))
		v.faulty = faulty{form: form.Get("form"), text: sentence(err), typed: form}
		return s.showPage(w, status, one, v)
	}
	s.sessions.say(one, said)
	target := "/"
	if q := form.Get("q"); q != "" {
		target += "?q=" + url.QueryEscape(q)
	}
	http.Redirect(w, r, target, http.StatusSeeOther)
	return nil
}

// selected is what a form about links means.
func selected(f url.Values) shortener.Selection {
	return shortener.Selection{
		Slug:      shortener.Slug(f.Get("slug")),
		Host:      f.Get("host"),
		CreatorOf: shortener.Slug(f.Get("creator_of")),
	}
}

// countMeant returns how many links are meant, and how many of them are taken down; ok
// is whether they are more than the one that was named.
func (s *server) countMeant(ctx context.Context, sel shortener.Selection) (all, down int, ok bool, err error) {
	if sel.Slug != "" || sel == (shortener.Selection{}) {
		return 0, 0, false, nil
	}
	err = s.service.Select(ctx, sel, func(l shortener.Link) bool {
		all++
		if l.TakenDown != "" {
			down++
		}
		return true
	})
	return all, down, true, err
}

func (s *server) asksToDisable(ctx context.Context, f url.Values) (string, error) {
	sel := selected(f)
	all, down, ok, err := s.countMeant(ctx, sel)
	if err != nil || !ok {
		return "", err
	}
	return fmt.Sprintf("Take down every link of %s? That is %s; %s taken down already.", sel, several(int64(all), "link"), grouped(int64(down))), nil
}

func (s *server) doDisable(ctx context.Context, f url.Values) (flash, error) {
	sel := selected(f)
	n, err := s.takeDown(ctx, sel, f.Get("reason"), f.Get("note"))
	return flash{Text: fmt.Sprintf("Taken down: %s of %s.", several(int64(n), "link"), sel)}, err
}

func (s *server) asksToEnable(ctx context.Context, f url.Values) (string, error) {
	sel := selected(f)
	_, down, ok, err := s.countMeant(ctx, sel)
	if err != nil || !ok {
		return "", err
	}
	return fmt.Sprintf("Let every link of %s lead on that was taken down? That is %s.", sel, several(int64(down), "link")), nil
}

func (s *server) doEnable(ctx context.Context, f url.Values) (flash, error) {
	sel := selected(f)
	n, err := s.bringBack(ctx, sel, f.Get("note"))
	return flash{Text: fmt.Sprintf("Brought back: %s of %s.", several(int64(n), "link"), sel)}, err
}

func (s *server) asksToDelete(ctx context.Context, f url.Values) (string, error) {
	m, err := s.service.Show(ctx, shortener.Slug(f.Get("slug")))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Delete 1 link for ever? %s leads to %s. Its slug stays taken.", m.Link.Slug, shortener.Location(m.Link.Destination)), nil
}

func (s *server) doDelete(ctx context.Context, f url.Values) (flash, error) {
	slug := shortener.Slug(f.Get("slug"))
	_, err := s.remove(ctx, slug, f.Get("note"))
	return flash{Text: fmt.Sprintf("Deleted: %s.", slug)}, err
}

func (s *server) doBlock(ctx context.Context, f url.Values) (flash, error) {
	b, err := s.block(ctx, strings.TrimSpace(f.Get("host")), f.Get("note"))
	return flash{Text: fmt.Sprintf("Blocked: %s and its subdomains.", b.Host)}, err
}

func (s *server) doUnblock(ctx context.Context, f url.Values) (flash, error) {
	host := f.Get("host")
	return flash{Text: fmt.Sprintf("Not blocked any more: %s.", host)}, s.unblock(ctx, host, f.Get("note"))
}

func (s *server) doSetOverride(ctx context.Context, f url.Values) (flash, error) {
	o := shortener.Override{Target: strings.TrimSpace(f.Get("target")), Note: f.Get("note")}
	var err error
	switch f.Get("kind") {
	case "unlimited":
		o.Limit = quota.Unlimited
	case "block":
	default:
		if o.Limit, err = wholeNumber(f, "limit", 1, quota.Unlimited-1); err != nil {
			return flash{}, err
		}
	}
	if f.Get("hours") != "" {
		hours, err := wholeNumber(f, "hours", 1, 24*366)
		if err != nil {
			return flash{}, err
		}
		o.Until = s.now().Add(time.Duration(hours) * time.Hour)
	}
	set, err := s.setOverride(ctx, o)
	return flash{Text: fmt.Sprintf("The override of %s is set.", set.Target)}, err
}

func (s *server) doRemoveOverride(ctx context.Context, f url.Values) (flash, error) {
	target := f.Get("target")
	return flash{Text: fmt.Sprintf("The override of %s is removed.", target)}, s.endOverride(ctx, target)
}

func (s *server) doCreateKey(ctx context.Context, f url.Values) (flash, error) {
	daily, err := wholeNumber(f, "daily", 1, quota.Unlimited)
	if err != nil {
		return flash{}, err
	}
	made, text, err := s.makeKey(ctx, f.Get("name"), daily)
	return flash{
		Text: fmt.Sprintf("The key %q may make %s a day. This is the only time that it is shown.", made.Name, several(made.Daily, "link")),
		Key:  string(text),
	}, err
}

func (s *server) doChangeKey(ctx context.Context, f url.Values) (flash, error) {
	daily, err := wholeNumber(f, "daily", 1, quota.Unlimited)
	if err != nil {
		return flash{}, err
	}
	id, err := seenKey(f)
	if err != nil {
		return flash{}, err
	}
	changed, err := s.limitKey(ctx, f.Get("name"), id, daily)
	return flash{Text: fmt.Sprintf("The key %q may make %s a day now.", changed.Name, several(changed.Daily, "link"))}, err
}

func (s *server) asksToRevoke(ctx context.Context, f url.Values) (string, error) {
	name := f.Get("name")
	report, err := s.service.QuotaOf(ctx, "key "+name)
	if err != nil {
		return "", err
	}
	var made int64
	for _, u := range report.Usages {
		if u.Level == quota.LevelClient {
			made = u.Used
		}
	}
	return fmt.Sprintf("Revoke the key %q? Its holder cannot make links any more. Those that it made lead on; today it has made %s.", name, several(made, "link")), nil
}

func (s *server) doRevoke(ctx context.Context, f url.Values) (flash, error) {
	id, err := seenKey(f)
	if err != nil {
		return flash{}, err
	}
	name := f.Get("name")
	return flash{Text: fmt.Sprintf("The key %q is revoked.", name)}, s.endKey(ctx, name, id)
}

// seenKey returns the id of the key that the page has shown: another one may have its name
// by now. It is 0 where the form has none.
func seenKey(f url.Values) (quota.KeyID, error) {
	text := f.Get("id")
	if text == "" {
		return 0, nil
	}
	id, err := strconv.ParseUint(text, 16, 64)
	if err != nil {
		return 0, &badRequest{errors.New("id must be that of a key: 16 hexadecimal digits")}
	}
	return quota.KeyID(id), nil
}

// wholeNumber reads a field, from least to most.
func wholeNumber(f url.Values, name string, least, most int64) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(f.Get(name)), 10, 64)
	if err != nil || n < least || n > most {
		return 0, &badRequest{fmt.Errorf("%s must be a whole number of at least %d", name, least)}
	}
	return n, nil
}
