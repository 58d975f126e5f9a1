package shortener

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"snip/quota"
)

// Notice is what operators are to be told. It is kept until it has been delivered,
// so it may be delivered twice, with the same ID.
type Notice struct {
	ID   string    `json:"id"` // begins with a day, such as "2026-11-29/budget/80"
	At   time.Time `json:"at"`
	Kind string    `json:"kind"` // "budget", or the kind of a fault
	Text string    `json:"text"` // a sentence
}

// OldestFirst is the order in which notices are delivered.
func OldestFirst(a, b Notice) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID)) }

// KindBudget is the kind of a notice that a part of the service's day is used up.
const KindBudget = "budget"

// budgetShares are the parts of the service's day, and of the money for checks of a day,
// that operators are told of, in %.
var budgetShares = [...]int64{100, 90, 80, 50}

// BudgetNotice returns what operators are to be told when a creation has been
// counted with these usages: the highest share of the service's day that it has
// reached, if any. A store keeps it in the commit that counts, unless one of the
// same ID was kept before.
func BudgetNotice(c Creation, usages []quota.Usage) (Notice, bool) {
	for i, u := range usages {
		if u.Level != quota.LevelService || len(c.Links) == 0 {
			continue
		}
		before := u.Used - c.Charges[i].Cost
		for _, share := range budgetShares {
			reached := (u.Max*share + 99) / 100 // rounded up; a limit has no room for an overflow here
			if before >= reached || u.Used < reached {
				continue
			}
			return Notice{
				ID:   fmt.Sprintf("%s/%s/%d", c.Day, KindBudget, share),
				At:   c.Links[0].CreatedAt,
				Kind: KindBudget,
				Text: fmt.Sprintf("%d %% of the links of %s are made: %d of %d. The day ends at %s.",
					share, c.Day, u.Used, u.Max, u.ResetAt.Format(time.RFC3339)),
			}, true
		}
	}
	return Notice{}, false
}

// Post keeps a notice until it has been delivered. The error is the store's.
func (s *Service) Post(ctx context.Context, n Notice) error { return s.store.Post(ctx, n) }

// Notices returns up to n notices that have not been delivered, the oldest first.
func (s *Service) Notices(ctx context.Context, n int) ([]Notice, error) {
	return s.store.Notices(ctx, n)
}

// Delivered forgets a notice.
func (s *Service) Delivered(ctx context.Context, id string) error { return s.store.Delivered(ctx, id) }
