package admin

import (
	"context"
	"net/http"
	"time"

	"snip/quota"
	"snip/shortener"
)

// Process is what the handler cannot know by itself.
type Process struct {
	Version     string
	Started     time.Time
	Settings    Settings
	Connections func() Connections
	Requests    func(func(route, class string, times shortener.HistogramCounts)) // calls with the times of each
	Throttle    func() quota.ThrottleStats
	Changes     func() quota.ThrottleStats // of changes to links
	Blocklist   func() []Blocklist
	Alerts      func() Alerts
	Tokens      *TokensRefused // counts them here; nil where nobody else asks
}

// Connections is what became of the public listener's connections.
type Connections struct {
	Limit   int64            `json:"limit"`   // how many may be open
	Open    map[string]int64 `json:"open"`    // by what they do
	Closed  map[string]int64 `json:"closed"`  // by the server before the client was done, by reason
	Refused map[string]int64 `json:"refused"` // by the bound that left no room
}

// Settings are the limits that the process was started with.
type Settings struct {
	Policy   quota.Policy
	Every    time.Duration // of the throttle; 0 when it is off
	Burst    int
	KeysOnly bool
	Checks   *shortener.Checks // of destinations; nil is none
}

// Blocklist is what became of a list of hosts.
type Blocklist struct {
	Path   string    `json:"path"`
	Names  int       `json:"names"`
	Loaded time.Time `json:"loaded,omitzero"` // absent if it never was
	Error  string    `json:"error,omitempty"` // why the latest attempt failed
}

// Alerts is what became of notices to the operator.
type Alerts struct {
	Delivered int64 `json:"delivered"`
	Failed    int64 `json:"failed"` // attempts
}

// status is how the service is.
type status struct {
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	Ready   bool      `json:"ready"`
	Reason  string    `json:"reason,omitempty"` // why it is not
	Day     string    `json:"day"`
	Budget  *usage    `json:"budget"` // the service's; null where that level is off or cannot be read
	DryRun  []string  `json:"dry_run,omitempty"`

	Creations map[string]int64 `json:"creations"` // since the start, by how they ended
	Visits    map[string]int64 `json:"visits"`    // the same
	Throttled int64            `json:"throttled"`

	Connections Connections `json:"connections"`

	Reputation *reputation `json:"reputation,omitempty"` // absent where destinations are not checked, or it cannot be read

	Store      store       `json:"store"`
	Blocklists []Blocklist `json:"blocklists"`
	Keys       int         `json:"keys"`
	Overrides  int         `json:"overrides"`
	Blocks     int         `json:"blocks"`
	Notices    int         `json:"notices_waiting"`
	Alerts     Alerts      `json:"alerts"`
}

// store is how the store is.
type store struct {
	Bytes       int64   `json:"bytes"`
	Commits     int64   `json:"commits"`
	Operations  int64   `json:"operations"`
	LastCommit  float64 `json:"last_commit_seconds"`
	CommitsTook float64 `json:"commits_took_seconds"`
	Waiting     int     `json:"waiting"`
	TurnedAway  int64   `json:"turned_away"`
	Trouble     string  `json:"trouble,omitempty"`
}

func (s *server) status(ctx context.Context) status {
	v := status{
		Version: s.process.Version,
		Started: s.process.Started,
		Ready:   true,
		Day:     quota.DayOf(s.now()).Label,
	}
	if err := s.service.Ready(ctx); err != nil {
		v.Ready, v.Reason = false, err.Error()
	}
	if u, err := s.service.Budget(ctx); err == nil && u.Level != "" {
		budget := viewUsage(u)
		v.Budget = &budget
	}
	for _, level := range shortener.Levels {
		if s.process.Settings.Policy.DryRun[level] {
			v.DryRun = append(v.DryRun, string(level))
		}
	}
	o := s.service.Outcomes()
	v.Creations = creations(o)
	for _, level := range shortener.Levels {
		v.Creations["refused_by_"+string(level)] = o.Refused[level]
		v.Creations["would_refuse_"+string(level)] = o.WouldRefuse[level]
	}
	v.Visits = map[string]int64{"found": o.Followed, "not_found": o.Missing, "ended": o.Ended, "taken_down": o.TakenDown, "failed": o.Failed, "not_counted": o.VisitsLost}
	v.Throttled = s.process.Throttle().Refused
	v.Connections = s.process.Connections()
	v.Reputation = s.viewReputation(ctx)
	h := s.service.StoreHealth()
	v.Store = store{
		Bytes:       h.Bytes,
		Commits:     h.Commits,
		Operations:  h.Operations,
		LastCommit:  h.LastCommit.Seconds(),
		CommitsTook: h.CommitTime.Sum.Seconds(),
		Waiting:     h.Waiting,
		TurnedAway:  h.TurnedAway,
		Trouble:     h.Trouble,
	}
	v.Blocklists = s.process.Blocklist()
	v.Keys, v.Overrides, v.Blocks = s.service.Set()
	if notices, err := s.service.Notices(ctx, 1000); err == nil {
		v.Notices = len(notices)
	}
	v.Alerts = s.process.Alerts()
	return v
}

func (s *server) showStatus(w http.ResponseWriter, r *http.Request) error {
	return writeJSON(w, http.StatusOK, s.status(r.Context()))
}

// dayRecord is what is kept of a day.
type dayRecord struct {
	Day     string                `json:"day"`
	Created int64                 `json:"created"`
	Clients int64                 `json:"clients"`
	Busiest int64                 `json:"busiest"`
	Refused map[quota.Level]int64 `json:"refused"`
	Hours   shortener.Hours       `json:"hours"` // created, by the hour in UTC
}

// history lists the latest days.
func (s *server) history(w http.ResponseWriter, r *http.Request) error {
	n, err := number(r, "limit", shortener.HistoryDays, shortener.HistoryDays)
	if err != nil {
		return err
	}
	// What is not written down yet is what operators look at most.
	if err := s.service.KeepHistory(r.Context()); err != nil {
		return err
	}
	records, err := s.service.History(r.Context(), int(n))
	if err != nil {
		return err
	}
	answer := struct {
		Days []dayRecord `json:"days"`
	}{make([]dayRecord, len(records))}
	for i, record := range records {
		answer.Days[i] = dayRecord(record)
	}
	return writeJSON(w, http.StatusOK, answer)
}

// acceptClock says that the clock is right.
func (s *server) acceptClock(w http.ResponseWriter, r *http.Request) error {
	forgotten, err := s.service.AcceptClock(r.Context())
	if err != nil {
		return err
	}
	if forgotten != "" {
		s.log.Warn("the clock was accepted although a later day was counted", "newest", forgotten)
	}
	return writeJSON(w, http.StatusOK, map[string]string{"forgotten": forgotten})
}

// creations is how creations ended, but for those that a level or the throttle refused.
func creations(o shortener.Outcomes) map[string]int64 {
	return map[string]int64{
		"created": o.Created, "replayed": o.Replayed, "invalid": o.Invalid, "slug_taken": o.Taken, "blocked": o.Blocked,
		"unchecked": o.Unchecked, "withdrawn": o.Withdrawn, "unavailable": o.Unavailable,
		"blocked_destination": o.BlockedDestination, "foreign": o.Foreign,
		"unauthorized": o.Unauthorized, "busy": o.Busy, "failed": o.Faulty,
	}
}
