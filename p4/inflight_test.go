package p4

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

func TestInFlight(t *testing.T) {
	t.Parallel()
	limits, err := NewInFlight([]string{"//depot/main/... 4", `"//depot/big game/..." 1`, "//depot/*/shaders/....fx  2"})
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
		"of no such path":      {[]string{"//depot/rel/a.go"}, nil},
		"of one":               {[]string{"//depot/rel/a.go", "//depot/MAIN/a.go", "//depot/main/b.go"}, []string{"//depot/main/..."}},
		"with a blank":         {[]string{"//depot/big game/a"}, []string{"//depot/big game/..."}},
		"a file of two":        {[]string{"//depot/main/shaders/x/a.fx"}, []string{"//depot/main/...", "//depot/*/shaders/....fx"}},
		"a change without any": {nil, nil},
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

func TestInFlightThatIsRefused(t *testing.T) {
	t.Parallel()
	for entry, says := range map[string]string{
		"//depot/main/...":       "not how many reviews",
		"//depot/main/... 0":     "1 or more",
		"//depot/main/... 4 per": "not how many reviews",
		"depot/main/... 4":       "does not begin with //",
		"//depot/a#3 4":          "revision",
		`"//depot/a 4`:           "no end",
		"//depot/a/... 5":        "already",
	} {
		_, err := NewInFlight([]string{"//depot/a/... 4", entry})
		if failure.ClassOf(err) != failure.ConfigInvalid || !strings.Contains(err.Error(), "entry 2") || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", entry, err)
		}
	}
}
