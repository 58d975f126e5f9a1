package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// reputationCommands are the sub-commands about checks of destinations.
type reputationCommands struct {
	Reservations struct {
		Limit int `default:"100" help:"How many at most, up to 10000."`
		jsonFlag
	} `cmd:"" help:"List what is held and what was paid for calls, with its times: first what is pending."`
}

// reservation is a reservation as the admin listener tells it.
type reservation struct {
	ID        string    `json:"id"`
	State     string    `json:"state"`
	Expired   bool      `json:"expired"`
	CreatedAt time.Time `json:"created_at,omitzero"`
	UpdatedAt time.Time `json:"updated_at,omitzero"`
	ExpiresAt time.Time `json:"expires_at"`
	OnExpiry  string    `json:"on_expiry"`
	Charges   []struct {
		Level    string `json:"level"`
		Window   string `json:"window"`
		Reserved int64  `json:"reserved"`
		Paid     int64  `json:"paid"`
	} `json:"charges"`
}

func listReservations(ctx context.Context, c *adminClient, line *commandLine, stdout, stderr io.Writer) error {
	asked := line.Reputation.Reservations
	var answer struct {
		Reservations []reservation `json:"reservations"`
		More         bool          `json:"more"`
	}
	path := "/api/reputation/reservations?limit=" + strconv.Itoa(asked.Limit)
	if err := c.call(ctx, http.MethodGet, path, nil, &answer); err != nil {
		return err
	}
	if answer.More {
		fmt.Fprintf(stderr, "There are more; --limit %d raises how many are listed.\n", 10*asked.Limit)
	}
	if asked.JSON {
		return printJSON(stdout, answer.Reservations)
	}
	table := newTable(stdout, "ID\tSTATE\tCREATED\tUPDATED\tEXPIRES\tPAID OF RESERVED")
	for _, r := range answer.Reservations {
		state := r.State
		if r.Expired {
			state += " on expiry"
		}
		var sums []string
		for _, c := range r.Charges {
			sums = append(sums, fmt.Sprintf("%s %d/%d", c.Level, c.Paid, c.Reserved))
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", r.ID, state, instantText(r.CreatedAt), instantText(r.UpdatedAt),
			instantText(r.ExpiresAt), strings.Join(sums, ", "))
	}
	return table.Flush()
}

// instantText is an instant in a table.
func instantText(t time.Time) string {
	if t.IsZero() {
		return "unknown"
	}
	return t.Format(time.RFC3339)
}
