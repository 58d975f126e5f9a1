package shortener

// Destinations are the rules that a destination must pass.
type Destinations struct {
	PublicURL    string // what short links start with; destinations under it are refused
	AllowPrivate bool   // whether literal private and loopback addresses may be destinations
}

// Parse returns the destination to store, or an [*InvalidError].
func (d Destinations) Parse(text string) (string, error) { return text, nil }

// Location returns the destination as the Location header carries it: ASCII is
// left byte for byte, an international host becomes punycode, and what else is
// not ASCII becomes percent-encoded UTF-8.
func Location(destination string) string { return destination }
