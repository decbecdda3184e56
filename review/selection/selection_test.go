package selection

import (
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
)

func newPolicy(t *testing.T, cfg Config) *Policy {
	t.Helper()
	p, err := New(cfg)
	testkit.NoError(t, err)
	return p
}

func TestByPath(t *testing.T) {
	t.Parallel()
	p := newPolicy(t, Config{})
	for reason, paths := range map[review.SkipReason][]string{
		"": {
			"//depot/main/src/main.go", "//depot/main/vendors/list.cs", "//depot/main/vendor.go", "//depot/main/README.md",
			"//depot/main/Cargo.toml", "//depot/main/package.json", "//depot/main/.env.example", "//depot/main/env.go",
			"//depot/main/id_rsa.pub", "//depot/main/keys.c", "//depot/main/lock.c", "//depot/k8s/pods/pod.go", "//depot/ops.def",
			"//depot/main/generator.go", "//depot/main/admin.cs", "//depot/main/designer.cs",
		},
		review.SkipSecret: {
			"//depot/main/.env", "//depot/main/.env.production", "//depot/ops/ID_RSA", "//depot/ops/.ssh/config", "//depot/ops/.netrc",
			"//depot/web/.npmrc", "//depot/tls/server.pem", "//depot/tls/server.key", "//depot/ops/.aws/credentials", "//depot/ops/prod.tfstate",
			"//depot/vendor/x/.env", "//depot/app/release.keystore", "//depot/home/.p4tickets", "//depot/gcp/service-account-prod.json",
		},
		review.SkipVendored: {
			"//depot/main/vendor/github.com/x/y.go", "//depot/web/node_modules/left-pad/index.js", "//depot/main/third_party/zlib/zlib.c",
			"//depot/game/Source/ThirdParty/Steam/steam.h", "//depot/web/node_modules/x/package-lock.json",
		},
		review.SkipLockFile: {
			"//depot/web/package-lock.json", "//depot/web/yarn.lock", "//depot/main/go.sum", "//depot/main/Cargo.lock", "//depot/py/poetry.lock",
			"//depot/cs/packages.lock.json", "//depot/rb/Gemfile.lock", "//depot/infra/.terraform.lock.hcl",
		},
		review.SkipGenerated: {
			"//depot/main/api.pb.go", "//depot/main/api_pb2.py", "//depot/cs/Form1.Designer.cs", "//depot/cs/Client.g.cs", "//depot/web/app.min.js",
			"//depot/web/app.js.map", "//depot/game/Assets/Hero.prefab", "//depot/game/Assets/Hero.cs.meta", "//depot/chip/core_netlist.v",
			"//depot/main/zz_generated.deepcopy.go", "//depot/web/__snapshots__/a.test.js.snap",
		},
	} {
		for _, path := range paths {
			if got := p.ByPath(path); got.Reason != reason || (got.Pattern == "") != (reason == "") {
				t.Errorf("%s: %q by pattern %q, want %q", path, got.Reason, got.Pattern, reason)
			}
		}
	}
}

func TestConfiguredPatterns(t *testing.T) {
	t.Parallel()
	p := newPolicy(t, Config{
		Include: []string{"//depot/main/vendor/ours/**", "*.pb.go", "*.pem", ".env", "both.c"},
		Exclude: []string{"//depot/main/legacy/**", "both.c"},
	})
	for path, want := range map[string]review.SkipReason{
		"//depot/main/vendor/ours/a.go":   "",
		"//depot/main/vendor/theirs/a.go": review.SkipVendored,
		"//depot/main/api.pb.go":          "",
		"//depot/main/legacy/a.go":        review.SkipExcluded,
		"//depot/main/both.c":             review.SkipExcluded,
		"//depot/main/tls.pem":            review.SkipSecret,
		"//depot/main/vendor/ours/.env":   review.SkipSecret,
	} {
		if got := p.ByPath(path).Reason; got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

func TestNewRejectsPatterns(t *testing.T) {
	t.Parallel()
	_, err := New(Config{Exclude: []string{"//depot/x/..."}, Include: []string{"*.{c"}})
	if err == nil || !strings.Contains(err.Error(), "//depot/x/...") || !strings.Contains(err.Error(), "*.{c") {
		t.Errorf("error %v, want both patterns named", err)
	}
}

func TestKinds(t *testing.T) {
	t.Parallel()
	for kind, paths := range map[Kind][]string{
		Source: {"main.go", "src/Engine.cpp", "a.sql", "rtl/core.v", "contrib/tool.py"},
		Test:   {"main_test.go", "tests/a.py", "src/app.spec.ts", "EngineTests.cs", "core_tb.sv", "test_app.py"},
		Build:  {"Makefile", "CMakeLists.txt", "app.csproj", "ci.yaml", "requirements.txt", "Dockerfile", "BUILD"},
		Docs:   {"README.md", "docs/guide.html", "LICENSE", "notes.txt"},
	} {
		for _, path := range paths {
			if got := KindOf("//depot/main/" + path); got != kind {
				t.Errorf("%s: kind %d, want %d", path, got, kind)
			}
		}
	}
	if !IsRisky("//depot/main/LoginForm.cs") || IsRisky("//depot/main/Form.cs") {
		t.Error("IsRisky is wrong")
	}
}
