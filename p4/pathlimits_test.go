package p4

import (
	"maps"
	"slices"
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

func TestPathLimits(t *testing.T) {
	t.Parallel()
	limits, err := NewPathLimits([]string{"//depot/main/... 4", `"//depot/big game/..." 1`, "//depot/*/shaders/....fx  2"})
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]int{"//depot/main/...": 4, "//depot/big game/...": 1, "//depot/*/shaders/....fx": 2}; !maps.Equal(limits.Limits(), want) {
		t.Errorf("limits are %v, want %v", limits.Limits(), want)
	}
	if got := limits.Patterns(); len(got) != 3 || got[1] != "//depot/big game/..." {
		t.Errorf("patterns are %q", got)
	}
	for name, tt := range map[string]struct{ paths, want []string }{
		"no pattern":               {[]string{"//depot/rel/a.go"}, nil},
		"one pattern":              {[]string{"//depot/rel/a.go", "//depot/MAIN/a.go", "//depot/main/b.go"}, []string{"//depot/main/..."}},
		"a path with a blank":      {[]string{"//depot/big game/a"}, []string{"//depot/big game/..."}},
		"two patterns of one file": {[]string{"//depot/main/shaders/x/a.fx"}, []string{"//depot/main/...", "//depot/*/shaders/....fx"}},
		"no files":                 {nil, nil},
	} {
		var files []review.File
		for _, p := range tt.paths {
			files = append(files, review.File{DepotPath: p})
		}
		if got := limits.Of(files); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestNewPathLimitsRefuses(t *testing.T) {
	t.Parallel()
	for name, entry := range map[string]string{
		"no number":          "//depot/main/...",
		"a limit of 0":       "//depot/main/... 0",
		"more than a number": "//depot/main/... 4 per",
		"a local path":       "depot/main/... 4",
		"a revision":         "//depot/a#3 4",
		"half a quote":       `"//depot/a 4`,
		"a second entry":     "//depot/a/... 5",
	} {
		if _, err := NewPathLimits([]string{"//depot/a/... 4", entry}); failure.ClassOf(err) != failure.ConfigInvalid {
			t.Errorf("%s: %v, want ConfigInvalid", name, err)
		}
	}
}
