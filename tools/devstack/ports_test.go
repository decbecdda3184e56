package main

import (
	"net"
	"strings"
	"testing"
)

// listen takes a port on address for the time of the test.
func listen(t *testing.T, address string) int {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().(*net.TCPAddr).Port
}

func TestChoosePort(t *testing.T) {
	t.Parallel()
	free, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	taken, wildcard := listen(t, loopback+":0"), listen(t, ":0")
	for name, c := range map[string]struct {
		wanted, wellKnown int
		forTests          bool
		want              int // 0: any other
		refused           bool
	}{
		"a wanted port is kept":                   {wanted: free, wellKnown: taken, want: free},
		"a wanted port that is in use is refused": {wanted: taken, refused: true},
		"a free well-known port is used":          {wellKnown: free, want: free},
		"a well-known port in use is replaced":    {wellKnown: taken},
		"a wildcard listener uses its port, too":  {wellKnown: wildcard},
		"tests use any port":                      {wellKnown: free, forTests: true},
		"a number that is no port is refused":     {wanted: 70000, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := options{forTests: c.forTests}.choosePort(c.wanted, c.wellKnown, "x-port")
			if c.refused {
				if err == nil || !strings.Contains(err.Error(), "-x-port") {
					t.Errorf("error %v, want one that names the flag", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.want != 0 && got != c.want || c.want == 0 && (got == c.wellKnown || got == 0) {
				t.Errorf("port %d, want %d", got, c.want)
			}
		})
	}
}
