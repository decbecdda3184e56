package secret

import (
	"io/fs"
	"runtime"
)

// Exposed reports whether the permission bits of a file or directory give any of the
// access in mask. On Windows they do not show who has access: the access list decides,
// and Exposed returns false.
func Exposed(info fs.FileInfo, mask fs.FileMode) bool {
	return runtime.GOOS != "windows" && info.Mode().Perm()&mask != 0
}
