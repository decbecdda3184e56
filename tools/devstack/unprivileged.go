package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// unprivilegedUser returns whom Postgres runs as, nil for the user devstack
// runs as. Postgres refuses to run as root.
func unprivilegedUser() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUID := strconv.ParseUint(u.Uid, 10, 32)
		gid, errGID := strconv.ParseUint(u.Gid, 10, 32)
		if errUID == nil && errGID == nil && uid != 0 {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
		}
	}
	return nil, errors.New("choose a user for Postgres, which refuses to run as root: this machine has neither 'postgres' nor 'nobody'")
}

// enterableDir returns a directory for as: dir itself, or one outside the
// project when a directory above dir is closed to as. It makes neither.
func enterableDir(dir string, as *syscall.Credential) string {
	if as == nil || canEnter(dir, as) {
		return dir
	}
	return outsideDir(dir)
}

// outsideDir is the stand-in for dir in the system's temporary directory. Its
// name is made from dir, so that the next run finds it again.
func outsideDir(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join(os.TempDir(), "criticizer-"+hex.EncodeToString(sum[:6]))
}

// canEnter reports whether as may pass through dir and all above it.
func canEnter(dir string, as *syscall.Credential) bool {
	for parent := dir; ; parent = filepath.Dir(parent) {
		info, err := os.Stat(parent)
		switch {
		case errors.Is(err, fs.ErrNotExist): // made later, by devstack, and open
		case err != nil || !mayTraverse(info, as):
			return false
		}
		if parent == filepath.Dir(parent) {
			return true
		}
	}
}

// mayTraverse reports whether as has the execute permission of a directory.
func mayTraverse(info fs.FileInfo, as *syscall.Credential) bool {
	mode := info.Mode().Perm()
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
		return false
	case stat.Uid == as.Uid:
		return mode&0o100 != 0
	case stat.Gid == as.Gid:
		return mode&0o010 != 0
	}
	return mode&0o001 != 0
}

// makeDir makes dir for as, nil for the user devstack runs as. An existing one
// that belongs to somebody else is refused: in a shared temporary directory
// anybody could have put it there.
func makeDir(dir string, mode fs.FileMode, as *syscall.Credential) error {
	uid, gid := os.Geteuid(), os.Getegid()
	if as != nil {
		uid, gid = int(as.Uid), int(as.Gid)
	}
	err := os.Mkdir(dir, mode)
	if err == nil {
		return errors.Join(os.Chmod(dir, mode), os.Chown(dir, uid, gid)) // whatever the umask
	}
	if !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make %s: %w", dir, err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("look at %s: %w", dir, err)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || !info.IsDir() || int(stat.Uid) != uid {
		return fmt.Errorf("%s exists and does not belong to user %d: remove it", dir, uid)
	}
	return nil
}
