package main

import (
	"context"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"snip/shortener/webrisk"
)

const envPrefix = "SNIP_"

// The commands, as kong names them.
const (
	commandServe   = "serve"
	commandHealth  = "health"
	commandMigrate = "migrate"
)

// operatorCommands talk to a running server.
var operatorCommands = map[string]func(context.Context, *adminClient, *commandLine, io.Writer, io.Writer) error{
	"keys create": createKey,
	"keys list":   listKeys,
	"keys change": changeKey,
	"keys revoke": revokeKey,

	"links list":    listLinks,
	"links show":    showLink,
	"links disable": disableLinks,
	"links enable":  enableLinks,
	"links delete":  deleteLink,

	"blocks add <host>":    addBlock,
	"blocks remove <host>": removeBlock,
	"blocks list":          listBlocks,

	"quota show <target>":     showQuota,
	"quota override <target>": overrideQuota,
	"quota overrides":         listOverrides,

	"audit":  printAudit,
	"status": printStatus,

	"clock accept": acceptClock,

	"quota history": printHistory,

	"reputation reservations": listReservations,

	"backup <file>": backup,
	"export":        export,
	"import <file>": importLinks,
}

// fileCommands work on files that no server has open.
var fileCommands = map[string]func(asked, io.Writer) error{
	"check <file>":   check,
	"restore <file>": restore,
	"copy":           copyStore,
}

const description = `A self-hosted URL shortener that cannot be drained.

Without a command it serves. Each setting is a flag or an environment variable, of which the flag wins; ` +
	`an empty variable counts as none.`

// commandLine is what may be typed, and the text of --help. Every setting is text
// here: kong stops at the first value that it cannot read, and readConfig reports
// all of them at once.
type commandLine struct {
	Listen     string   `group:"web" default:":8080" help:"Address and port to serve HTTP on; port 0 takes a free one."`
	PublicURL  string   `group:"web" name:"public-url" default:"http://localhost:8080" help:"What short links begin with; a path prefix is allowed. It is never taken from a request."`
	Contact    string   `group:"web" placeholder:"ADDRESS" help:"Mail address or URL for reports, shown to visitors. Without it the mention is left out."`
	Redirect   string   `group:"web" name:"redirect-status" default:"302" help:"Status of a redirect: 301, 302, 307 or 308. Browsers keep 301 and 308 for good."`
	Private    switched `group:"web" name:"allow-private-destinations" help:"Allow links to private and other special addresses, localhost, and names of private networks."`
	Proxies    string   `group:"web" name:"trusted-proxies" placeholder:"NETWORKS" help:"Reverse proxies whose word on the client's address counts: addresses or CIDR networks, separated by commas."`
	NAT64      string   `group:"web" name:"nat64-prefixes" placeholder:"PREFIXES" help:"IPv6 prefixes by which the network translates IPv4 clients (RFC 6052), separated by commas, next to 64:ff9b::/96."`
	ProxyField string   `group:"web" name:"client-ip-header" default:"X-Forwarded-For" help:"Header in which those proxies list the addresses they were called from."`
	CORS       string   `group:"web" name:"cors-origins" placeholder:"ORIGINS" help:"Sites whose pages may use the API, such as https://app.example, separated by commas. Without it none may."`

	Blocklists string   `group:"web" placeholder:"FILES" help:"Lists of hosts that links may not lead to, separated by commas: hosts files, names, or AdBlock rules. Read anew when they change and on SIGHUP."`
	Shorteners switched `group:"web" name:"allow-shorteners" help:"Allow links to other public URL shorteners."`
	Words      string   `group:"web" name:"reserved-slugs" placeholder:"SLUGS" help:"Slugs that nobody may choose, separated by commas, in addition to login, admin, support and the like."`

	Creation string `group:"web" default:"open" help:"Who makes links: open is everybody, keys is holders of an API key."`

	AdminListen      string `group:"admin" name:"admin-listen" default:"127.0.0.1:8081" help:"Address and port for the operator, never to be public; off turns it off. The commands call the server there."`
	AdminURL         string `group:"admin" name:"admin-url" placeholder:"URL" help:"URL of the operator's page behind a proxy, such as https://snip-admin.example. Localhost and IP addresses need none."`
	AlertWebhook     string `group:"admin" name:"alert-webhook" placeholder:"URL" help:"Where alerts are posted as JSON that Slack, Discord and ntfy understand; for ntfy its topic follows a #. They are in the log all the same."`
	AlertWebhookFile string `group:"admin" name:"alert-webhook-file" placeholder:"FILE" help:"File that holds the URL, read at the start."`

	AdminToken     string `group:"admin" name:"admin-token" placeholder:"TOKEN" help:"Token for the admin listener. Without it, the token is in a file next to the data file, named like it and .admin-token, made at the first start."`
	AdminTokenFile string `group:"admin" name:"admin-token-file" placeholder:"FILE" help:"File that holds the token, read at the start."`

	Store             string `group:"data" default:"snip.db" help:"The data file, made when it is missing; or the postgres:// URL of a database, which several servers may share."`
	StorePasswordFile string `group:"data" name:"store-password-file" placeholder:"FILE" help:"File that holds the password of the database, read at the start."`

	DeleteExpired string `group:"data" name:"delete-expired-after" default:"0" help:"Days after their expiry when links are deleted for good; 0 keeps them."`

	ThrottleEvery   string `group:"throttle" name:"throttle-every" default:"10s" help:"One creation per this time for each client; 0 turns the throttle off."`
	ThrottleBurst   string `group:"throttle" name:"throttle-burst" default:"3" help:"How many creations may come at once after a pause."`
	ThrottleClients string `group:"throttle" name:"throttle-clients" default:"65536" help:"How many clients are told apart at once, which bounds the memory."`

	QuotaClient    string `group:"quota" name:"quota-client" default:"50" help:"Links per client: an IPv4 address or an IPv6 /64."`
	QuotaNetwork   string `group:"quota" name:"quota-network" default:"250" help:"Links per network: an IPv4 /24 or an IPv6 /48."`
	QuotaService   string `group:"quota" name:"quota-service" default:"1000" help:"Links for everyone together."`
	QuotaNewcomers string `group:"quota" name:"quota-newcomers" default:"100" help:"The last part of the service's day, open to first links of new networks only."`

	DryClient  switched `group:"quota" name:"quota-client-dry-run" help:"Count at the client level and refuse nothing there; what it would refuse is in the metrics."`
	DryNetwork switched `group:"quota" name:"quota-network-dry-run" help:"The same at the network level."`
	DryService switched `group:"quota" name:"quota-service-dry-run" help:"The same at the service level."`

	ReputationKey       string `group:"reputation" name:"reputation-key" placeholder:"KEY" help:"Key of Google's Web Risk API. Without one, destinations are sent nowhere."`
	ReputationKeyFile   string `group:"reputation" name:"reputation-key-file" placeholder:"FILE" help:"File that holds the key, read at the start."`
	ReputationURL       string `group:"reputation" name:"reputation-url" default:"${reputation_url}" help:"Where the API is."`
	ReputationOnFailure string `group:"reputation" name:"reputation-on-failure" default:"refuse" help:"What becomes of a link whose destination cannot be checked, because the API fails or its budget is used up: refuse or allow."`
	ReputationTimeout   string `group:"reputation" name:"reputation-timeout" default:"3s" help:"How long one call may take."`
	ReputationPrice     string `group:"reputation" name:"reputation-price" default:"500" help:"What a call costs, in micro-units: 500 is half a thousandth of a dollar."`
	ReputationBudget    string `group:"reputation" name:"reputation-daily-budget" default:"1000000" help:"What the calls of a day may cost together, in micro-units: 1000000 is one dollar."`
	ReputationCalls     string `group:"reputation" name:"reputation-calls" default:"2000" help:"Calls for everyone together."`
	ReputationNetwork   string `group:"reputation" name:"reputation-network-calls" default:"500" help:"Calls for each network."`
	ReputationClient    string `group:"reputation" name:"reputation-client-calls" default:"100" help:"Calls for each client."`

	Version kong.VersionFlag `help:"Print the version and exit."`

	Serve  struct{} `cmd:"" default:"withargs" help:"Serve; what snip does without a command."`
	Health struct {
		Live bool `help:"Ask whether it answers: one that cannot make links still redirects."`
	} `cmd:"" help:"Ask the server on this machine at --listen whether it can make links; exit 0 or 1."`
	Migrate struct{} `cmd:"" help:"Make the tables of the database at --store those of this version. A server does so too, where its role may."`

	Keys       keyCommands        `cmd:"" help:"API keys, of a running server. Each is a client with a quota of its own."`
	Links      linkCommands       `cmd:"" help:"Links, of a running server."`
	Blocks     blockCommands      `cmd:"" help:"Hosts that links may not lead to, of a running server."`
	Quota      quotaCommands      `cmd:"" help:"Limits and what is used of them, of a running server."`
	Reputation reputationCommands `cmd:"" help:"Checks of destinations, of a running server."`

	Audit  auditCommand  `cmd:"" help:"What operators did, the latest first."`
	Clock  clockCommands `cmd:"" help:"The clock of a running server."`
	Status statusCommand `cmd:"" help:"How a running server is: today's budget, what it refused, its store."`

	fileLine
}

// groups are the headings of --help.
var groups = kong.Groups{
	"web":        "Web:",
	"admin":      "Admin:",
	"data":       "Data:",
	"throttle":   "Throttle (approximate, in memory, per process):",
	"quota":      "Quota (exact, stored, per UTC day; 0 leaves a level out; client <= network, network + newcomers <= service):",
	"reputation": "Check of destinations (off without a key; limits are exact, stored, per UTC day; client <= network <= service):",
}

// switched is a flag that needs no value but may have one, kept as text.
type switched string

// Decode takes what follows an equals sign, or "true".
func (s *switched) Decode(ctx *kong.DecodeContext) error {
	*s = "true"
	if token := ctx.Scan.Peek(); token.Type == kong.FlagValueToken {
		*s = switched(ctx.Scan.Pop().String())
	}
	return nil
}

// IsBool tells kong that no value need follow.
func (*switched) IsBool() bool { return true }

// asked is what a command line and an environment ask for.
type asked struct {
	command  string // empty when --help or --version has been answered
	line     *commandLine
	settings settings
	unknown  []string // variables with our prefix that name no setting, sorted
}

// setting is one value as it was given.
type setting struct {
	text     string
	given    bool   // by anyone; else it is the default
	variable string // the environment variable that gave it, if one did
}

// settings holds every setting by the name of its flag.
type settings map[string]setting

func parseCommandLine(args, environ []string, stdout io.Writer) (asked, error) {
	var (
		line     commandLine
		answered bool
	)
	parser, err := kong.New(&line,
		kong.Name("snip"),
		kong.Description(description),
		// A value such as -1 is refused by its own rule, not taken for a flag.
		kong.WithHyphenPrefixedParameters(true),
		kong.Vars{"version": versionText(), "reputation_url": webrisk.DefaultURL},
		kong.Writers(stdout, io.Discard),
		kong.Exit(func(int) { answered = true }),
		groups,
		kong.TypeMapper(reflect.TypeFor[time.Duration](), decodes(parseLength)),
		kong.KindMapper(reflect.Int, decodes(parseInt)),
		kong.KindMapper(reflect.Int64, decodes(parseInt)),
		kong.KindMapper(reflect.Uint64, decodes(parseUint)),
		kong.ConfigureHelp(kong.HelpOptions{WrapUpperBound: 120}),
		kong.ValueFormatter(helpWithVariable),
		kong.PostBuild(func(k *kong.Kong) error { return kong.Visit(k.Model, namePlaceholder) }),
	)
	if err != nil {
		return asked{}, fmt.Errorf("command line: %w", err)
	}
	ctx, err := parser.Parse(args)
	switch {
	case answered:
		return asked{}, nil
	case err != nil:
		return asked{}, &settingsError{[]error{fmt.Errorf("%w; see snip --help", err)}}
	}

	typed := map[string]bool{}
	for _, step := range ctx.Path {
		if step.Flag != nil {
			typed[step.Flag.Name] = true
		}
	}
	variables := ownVariables(environ)
	a := asked{command: ctx.Command(), line: &line, settings: settings{}}
	for _, flag := range parser.Model.Flags {
		if !isSetting(flag.Value) {
			continue
		}
		s := setting{text: flag.Target.String(), given: typed[flag.Name]}
		name := variableOf(flag.Name)
		if text := variables[name]; text != "" && !typed[flag.Name] {
			s = setting{text: text, given: true, variable: name}
		}
		a.settings[flag.Name] = s
		delete(variables, name)
	}
	for name := range variables {
		a.unknown = append(a.unknown, name)
	}
	slices.Sort(a.unknown)
	return a, nil
}

// decodes reads a value of a flag with parse, whose errors are sentences: those of kong
// tell of types of Go.
func decodes[T any](parse func(string) (T, error)) kong.MapperFunc {
	return func(ctx *kong.DecodeContext, target reflect.Value) error {
		var text string
		if err := ctx.Scan.PopValueInto("value", &text); err != nil {
			return err
		}
		value, err := parse(text)
		if err == nil {
			target.Set(reflect.ValueOf(value).Convert(target.Type()))
		}
		return err
	}
}

func parseInt(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		err = fmt.Errorf("%q: a whole number that is not too large is needed", text)
	}
	return n, err
}

func parseUint(text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		err = fmt.Errorf("%q: a whole number of at least 0 that is not too large is needed", text)
	}
	return n, err
}

// isSetting tells the settings from --help and --version.
func isSetting(v *kong.Value) bool { return v.Tag != nil && v.Tag.Group != "" }

func helpWithVariable(v *kong.Value) string {
	if !isSetting(v) {
		return v.Help
	}
	return fmt.Sprintf("%s [%s]", v.Help, variableOf(v.Name))
}

// namePlaceholder calls the value of a flag by the flag's own name where it has no other:
// kong shows its Go type, as in --name=STRING.
func namePlaceholder(node kong.Visitable, next kong.Next) error {
	if flag, ok := node.(*kong.Flag); ok && flag.PlaceHolder == "" && !flag.HasDefault {
		flag.PlaceHolder = strings.ToUpper(flag.Name)
	}
	return next(nil)
}

func variableOf(flag string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

func ownVariables(environ []string) map[string]string {
	own := map[string]string{}
	for _, pair := range environ {
		if name, text, _ := strings.Cut(pair, "="); strings.HasPrefix(name, envPrefix) {
			own[name] = text
		}
	}
	return own
}

// settingsError is everything that is wrong with the settings.
type settingsError struct{ problems []error }

func (e *settingsError) Error() string {
	if len(e.problems) == 1 {
		return e.problems[0].Error()
	}
	lines := []string{fmt.Sprintf("%d settings are wrong", len(e.problems))}
	for _, problem := range e.problems {
		lines = append(lines, problem.Error())
	}
	return strings.Join(lines, "\n  ")
}

// Unwrap returns every problem.
func (e *settingsError) Unwrap() []error { return e.problems }
