package main

import (
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// composed is what the tests need of docker-compose.yml.
type composed struct {
	Services map[string]composedService
	Networks map[string]struct {
		IPAM struct {
			Config []struct {
				Subnet netip.Prefix
				Range  netip.Prefix `yaml:"ip_range"`
			}
		}
	}
	Secrets map[string]struct{ File string }
}

type composedService struct {
	Image       string
	Profiles    []string
	Environment map[string]string
	Entrypoint  []string
	Command     []string
	Volumes     []string
	Ports       []string
	Secrets     []string
	Healthcheck struct{ Test []string }
	Networks    any
}

// fixedAddress returns the address that the service asks for in the network; it is not
// valid where any will do.
func (s composedService) fixedAddress(network string) (address netip.Addr, err error) {
	networks, _ := s.Networks.(map[string]any)
	settings, _ := networks[network].(map[string]any)
	if text, ok := settings["ipv4_address"].(string); ok {
		return netip.ParseAddr(text)
	}
	return address, nil
}

// composeValues is what scaling.md tells to put into .env.
var composeValues = map[string]string{"SNIP_HOST": "s.example"}

// composeSecrets is what scaling.md tells to put into cluster/secrets.
var composeSecrets = map[string]string{
	"superuser": "the superuser's", "replicator": "the replicator's", "snip": "the application's", "admin-token": replicaToken,
}

// secretsAt is where containers find their secrets.
const secretsAt = "/run/secrets/"

var composeVariable = regexp.MustCompile(`\$\{(\w+)(:-(\w*))?\}`)

// readCompose reads the file as docker compose does, with values for its variables.
func readCompose(t *testing.T, values map[string]string) composed {
	t.Helper()
	var c composed
	filled := composeVariable.ReplaceAllStringFunc(textOf(t, "../../docker-compose.yml"), func(variable string) string {
		parts := composeVariable.FindStringSubmatch(variable)
		if value := values[parts[1]]; value != "" {
			return value
		}
		if parts[2] == "" {
			t.Errorf("%s has no default, so whoever does not want it meets it", variable)
		}
		return parts[3]
	})
	if err := yaml.Unmarshal([]byte(filled), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

func textOf(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestComposeOfOne: without the profile there is one service, of which nothing must be set.
func TestComposeOfOne(t *testing.T) {
	t.Parallel()
	var plain []string
	for name, service := range readCompose(t, nil).Services {
		if service.Profiles == nil {
			plain = append(plain, name)
		} else if !slices.Equal(service.Profiles, []string{"cluster"}) {
			t.Errorf("%s is in %q", name, service.Profiles)
		}
	}
	if !slices.Equal(plain, []string{"snip"}) {
		t.Errorf("the services without a profile are %q", plain)
	}
}

// TestComposeAddresses: Docker gives addresses to services as they start, so a fixed one
// is free only outside of the range that Docker takes them from.
func TestComposeAddresses(t *testing.T) {
	t.Parallel()
	c := readCompose(t, nil)
	fixed := 0
	for network, settings := range c.Networks {
		pool := settings.IPAM.Config[0]
		for name, service := range c.Services {
			address, err := service.fixedAddress(network)
			if err != nil || address.IsValid() && (!pool.Subnet.Contains(address) || pool.Range.Contains(address)) {
				t.Errorf("%s is at %v, %v, of %v, whose range is %v", name, address, err, pool.Subnet, pool.Range)
			}
			if address.IsValid() {
				fixed++
			}
		}
		if !pool.Range.IsValid() || !pool.Subnet.Contains(pool.Range.Addr()) || pool.Range.Bits() <= pool.Subnet.Bits() {
			t.Errorf("%s has the range %v in %v", network, pool.Range, pool.Subnet)
		}
	}
	if fixed != 1 {
		t.Errorf("%d services have an address of their own, want Caddy", fixed)
	}
}

// TestComposeSecrets: a secret is a file in those containers that use it, and in no
// environment.
func TestComposeSecrets(t *testing.T) {
	t.Parallel()
	c := readCompose(t, nil)
	want := map[string][]string{
		"snip": nil, "snip-1": {"snip", "admin-token"}, "snip-2": {"snip", "admin-token"},
		"primary": {"superuser", "replicator", "snip"}, "standby": {"replicator"}, "caddy": nil,
	}
	for name, service := range c.Services {
		if !slices.Equal(service.Secrets, want[name]) {
			t.Errorf("%s has the secrets %q, want %q", name, service.Secrets, want[name])
		}
		for variable, value := range service.Environment {
			if secret := regexp.MustCompile(`(?i)password|token|secret|key`).MatchString(variable); secret && !strings.HasPrefix(value, secretsAt) {
				t.Errorf("%s has %s=%s, which is in no file", name, variable, value)
			}
			if secret, ok := strings.CutPrefix(value, secretsAt); ok && !slices.Contains(service.Secrets, secret) {
				t.Errorf("%s has no secret for %s=%s", name, variable, value)
			}
		}
	}
	ignored := textOf(t, "../../.gitignore")
	for name := range composeSecrets {
		if want := "./cluster/secrets/" + name; c.Secrets[name].File != want || !strings.Contains(ignored, "\n/cluster/secrets/\n") {
			t.Errorf("%s is in %q, want %q, which git ignores", name, c.Secrets[name].File, want)
		}
	}
}

// TestComposeOperator: the operator's page is published to the machine itself, and the
// containers are healthy while they answer.
func TestComposeOperator(t *testing.T) {
	t.Parallel()
	image := textOf(t, "../../Dockerfile")
	taken := map[string]string{}
	for name, service := range readCompose(t, nil).Services {
		if !strings.HasPrefix(name, "snip") {
			continue
		}
		_, port, _ := strings.Cut(service.Environment["SNIP_ADMIN_LISTEN"], ":")
		published := slices.IndexFunc(service.Ports, func(p string) bool {
			return port != "" && strings.HasPrefix(p, "127.0.0.1:") && strings.HasSuffix(p, ":"+port)
		})
		open := slices.ContainsFunc(service.Ports, func(p string) bool {
			return !strings.HasPrefix(p, "127.0.0.1:") && (strings.HasSuffix(p, ":"+port) || !strings.HasSuffix(p, ":8080"))
		})
		if published < 0 || open {
			t.Errorf("%s listens for the operator on %q, and publishes %q", name, service.Environment["SNIP_ADMIN_LISTEN"], service.Ports)
			continue
		}
		if other := taken[service.Ports[published]]; other != "" && name != "snip" && other != "snip" {
			t.Errorf("%s and %s publish %s", name, other, service.Ports[published])
		}
		taken[service.Ports[published]] = name
		if test := service.Healthcheck.Test; !slices.Equal(test, []string{"CMD", "/snip", "health", "--live"}) {
			t.Errorf("%s is healthy when %q says so", name, test)
		}
	}
	for _, line := range []string{`CMD ["/snip", "health", "--live"]`, "COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/"} {
		if !strings.Contains(image, line) {
			t.Errorf("the image has no %s", line)
		}
	}
}
