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

// unprivilegedUser returns the user for Postgres, which refuses to run as root.
// It is nil unless devstack runs as root.
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
	return nil, errors.New("choose a user for Postgres, which refuses to run as root: this machine has neither postgres nor nobody")
}

// outsideDir returns the directory in the system's temporary directory that
// replaces dir for another user. Its name depends on dir, so the next run finds
// it again.
func outsideDir(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join(os.TempDir(), "criticizer-"+hex.EncodeToString(sum[:6]))
}

// makeDir makes dir for user, or for the user of devstack if that is nil. It
// returns an error if dir exists and belongs to another user: in a shared
// temporary directory, any user could have created it.
func makeDir(dir string, mode fs.FileMode, user *syscall.Credential) error {
	uid, gid := os.Geteuid(), os.Getegid()
	if user != nil {
		uid, gid = int(user.Uid), int(user.Gid)
	}
	err := os.Mkdir(dir, mode)
	if err == nil {
		return errors.Join(os.Chmod(dir, mode), os.Chown(dir, uid, gid)) // independent of the umask
	}
	if !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make %s: %w", dir, err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("check owner of %s: %w", dir, err)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || !info.IsDir() || int(stat.Uid) != uid {
		return fmt.Errorf("%s exists and does not belong to user %d: remove it", dir, uid)
	}
	return nil
}
