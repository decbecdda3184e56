package main

import (
	"io"
	"slices"
	"strings"
	"testing"
)

const results = `{"Action":"run","Package":"github.com/criticizer/criticizer/e2e/chaos","Test":"TestChaos"}
{"Action":"skip","Package":"github.com/criticizer/criticizer/e2e/chaos","Test":"TestChaos"}
{"Action":"skip","Package":"github.com/criticizer/criticizer/p4","Test":"TestX/case"}
{"Action":"pass","Package":"github.com/criticizer/criticizer/p4","Test":"TestX"}
{"Action":"pass","Package":"github.com/criticizer/criticizer/p4"}
`

func TestUnlistedSkipsAreReported(t *testing.T) {
	t.Parallel()
	unlisted, err := report(io.Discard, strings.NewReader(results))
	if err != nil || !slices.Equal(unlisted, []string{"p4 TestX/case"}) {
		t.Errorf("unlisted are %q, %v", unlisted, err)
	}
}

func TestRunWithoutTestsIsAnError(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"nothing": "", "no JSON": "ok  p4\n"} {
		if _, err := report(io.Discard, strings.NewReader(text)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
