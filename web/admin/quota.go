package admin

import (
	"net/http"
	"time"

	"snip/quota"
	"snip/shortener"
)

// usage is what a level holds.
type usage struct {
	Level    quota.Level `json:"level"`
	Used     int64       `json:"used"`
	Limit    *int64      `json:"limit"` // null is any number
	ResetsAt time.Time   `json:"resets_at"`
	DryRun   bool        `json:"dry_run,omitempty"` // whether it refuses nothing
}

func viewUsage(u quota.Usage) usage {
	return usage{Level: u.Level, Used: u.Used, Limit: viewLimit(u.Max), ResetsAt: u.ResetAt}
}

// viewLimit returns nil for any number.
func viewLimit(limit int64) *int64 {
	if limit == quota.Unlimited {
		return nil
	}
	return &limit
}

// showQuota reports on one address, network or key.
func (s *server) showQuota(w http.ResponseWriter, r *http.Request) error {
	report, err := s.service.QuotaOf(r.Context(), r.URL.Query().Get("target"))
	if err != nil {
		return err
	}
	answer := struct {
		Target  string      `json:"target"`
		Levels  []usage     `json:"levels"` // the widest first
		Refuses quota.Level `json:"refuses,omitempty"`
		Blocked bool        `json:"blocked"`
		OpensAt time.Time   `json:"opens_at,omitzero"`
	}{Target: report.Target, Levels: make([]usage, len(report.Usages)), Refuses: report.Refuses, Blocked: report.Blocked, OpensAt: report.OpensAt}
	for i, u := range report.Usages {
		answer.Levels[i] = viewUsage(u)
		answer.Levels[i].DryRun = s.process.Settings.Policy.DryRun[u.Level]
	}
	return writeJSON(w, http.StatusOK, answer)
}

// override is what holds for one client, network or key.
type override struct {
	Target string    `json:"target"`
	Limit  *int64    `json:"limit"` // null is any number, 0 is none
	Until  time.Time `json:"until,omitzero"`
	Note   string    `json:"note,omitempty"`
	SetAt  time.Time `json:"set_at,omitzero"`
}

func viewOverride(o shortener.Override) override {
	return override{Target: o.Target, Limit: viewLimit(o.Limit), Until: o.Until, Note: o.Note, SetAt: o.SetAt}
}

func (s *server) listOverrides(w http.ResponseWriter, r *http.Request) error {
	overrides, err := s.service.Overrides(r.Context())
	if err != nil {
		return err
	}
	answer := struct {
		Overrides []override `json:"overrides"`
	}{make([]override, len(overrides))}
	for i, o := range overrides {
		answer.Overrides[i] = viewOverride(o)
	}
	return writeJSON(w, http.StatusOK, answer)
}

func (s *server) putOverride(w http.ResponseWriter, r *http.Request) error {
	var v override
	if err := readJSON(w, r, &v); err != nil {
		return err
	}
	wanted := shortener.Override{Target: v.Target, Limit: quota.Unlimited, Until: v.Until, Note: v.Note}
	if v.Limit != nil {
		wanted.Limit = *v.Limit
	}
	set, err := s.setOverride(r.Context(), wanted)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, viewOverride(set))
}

func (s *server) removeOverride(w http.ResponseWriter, r *http.Request) error {
	if err := s.endOverride(r.Context(), r.URL.Query().Get("target")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
