package review

import "testing"

func TestLinks(t *testing.T) {
	t.Parallel()
	l := Links{Change: "https://swarm.example.com/changes/{changelist}", File: "https://swarm.example.com/files/{path}?v=%40%3D{changelist}#L{line}"}
	for name, tc := range map[string]struct {
		links Links
		place Place
		want  string
	}{
		"a line":            {l, Place{Path: "//depot/a b/ä%40#\"<.c", StartLine: 7}, "https://swarm.example.com/files/depot/a%20b/%C3%A4%2540%23%22%3C.c?v=%40%3D12#L7"},
		"no line":           {l, Place{Path: "//depot/a.c"}, "https://swarm.example.com/files/depot/a.c?v=%40%3D12"},
		"braces and scheme": {l, Place{Path: "javascript://{line}/?x=1@evil.example", StartLine: 1}, "https://swarm.example.com/files/javascript://%7Bline%7D/%3Fx=1%40evil.example?v=%40%3D12#L1"},
		"a masked path":     {l, Place{Path: "//depot/[REDACTED:token:1]/a.c", StartLine: 1}, ""},
		"another scheme":    {Links{File: "javascript:{path}"}, Place{Path: "//depot/a.c"}, ""},
		"none":              {Links{}, Place{Path: "//depot/a.c"}, ""},
	} {
		if got := tc.links.ToFile(12, tc.place); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
	if got := l.ToChange(12); got != "https://swarm.example.com/changes/12" {
		t.Errorf("got %s", got)
	}
}
