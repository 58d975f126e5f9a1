package shortener

import "strings"

// officialSlugs are words that visitors would take for the operator's own pages, and
// those that phishing is known for. Nobody gets one, see [Config].
var officialSlugs = strings.Fields(`
	abuse account accounts activate activation admin administration administrator alert alerts auth
	authenticate authentication authorize bank banking billing confirm confirmation contact copyright
	credentials dashboard dmca help helpdesk hostmaster identity impressum imprint invoice invoices kyc
	legal login logoff logon logout manage management mfa moderator noc oauth official operator otp owner
	passkey passwd password passwords pay payment payments postmaster privacy recover recovery
	refund refunds register registration report reset root secure security session settings signin signoff
	signon signout signup snip sso staff status superuser support suspended sysadmin system team terms tos
	unblock unlock unsubscribe update updates validate validation verification verified verify wallet
	warning webmail webmaster www
`)

// lookAlikes are characters of slugs that are read as another one.
var lookAlikes = strings.NewReplacer("-", "", "_", "", "0", "o", "1", "l", "i", "l", "5", "s", "rn", "m", "vv", "w")

// foldSlug returns the same text for slugs that look alike: in any case, with hyphens
// or without, and with digits for letters.
func foldSlug(slug string) string { return lookAlikes.Replace(strings.ToLower(slug)) }
