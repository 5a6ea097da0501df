package life

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"strings"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	"gocloud.dev/blob/gcsblob"

	"github.com/pulumi/pulumi/pkg/v3/authhelpers"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/fsutil"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"

	"reside.dev/engine/internal/proc"
)

// lockFile is the content of a lock file in a file or object-store backend (pkg/backend/diy/lock.go).
type lockFile struct {
	Pid       int       `json:"pid"`
	Hostname  string    `json:"hostname"`
	Timestamp time.Time `json:"timestamp"`
}

// dead reports whether a lock belongs to the dead engine. If a new process has the same process id, it may hold a lock
// of its own, which is younger than the process.
func (l lockFile) dead(owner int, host string, since time.Time, started func(pid int) (time.Time, bool)) bool {
	if l.Pid != owner || l.Hostname != host || l.Timestamp.Before(since.Add(-time.Second)) {
		return false
	}
	begun, alive := started(owner)
	return !alive || l.Timestamp.Before(begun)
}

// removeLock removes the locks that a dead engine holds on a stack, and the incomplete files that it left.
func removeLock(ctx context.Context, lock Lock, owner int) error {
	if err := removeLockFiles(ctx, lock, owner); err != nil {
		return err
	}
	folder, isFolder, err := folderOf(lock.Backend)
	if err != nil || !isFolder {
		return err
	}
	return removeIncomplete(folder, lock.Stack)
}

func removeLockFiles(ctx context.Context, lock Lock, owner int) (err error) {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	bucket, err := openBucket(ctx, lock.Backend)
	if err != nil {
		return fmt.Errorf("opening the backend of the stack %s: %w", lock.Stack, err)
	}
	defer func() { err = errors.Join(err, bucket.Close()) }()
	folder := path.Join(workspace.BookkeepingDir, "locks", fsutil.QnamePath(tokens.QName(lock.Stack)))
	files := bucket.List(&blob.ListOptions{Prefix: folder + "/"})
	for {
		file, err := files.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("listing the locks of the stack %s: %w", lock.Stack, err)
		}
		content, err := bucket.ReadAll(ctx, file.Key)
		if err != nil {
			return fmt.Errorf("reading a lock of the stack %s: %w", lock.Stack, err)
		}
		var found lockFile
		if json.Unmarshal(content, &found) != nil || !found.dead(owner, host, lock.Since, proc.StartOf) {
			continue
		}
		if err := bucket.Delete(ctx, file.Key); err != nil {
			return fmt.Errorf("removing a lock of the stack %s: %w", lock.Stack, err)
		}
	}
}

// openBucket opens the storage of a backend as Pulumi does (pkg/backend/diy/backend.go).
func openBucket(ctx context.Context, backend string) (*blob.Bucket, error) {
	folder, isFolder, err := folderOf(backend)
	if err != nil {
		return nil, err
	}
	if isFolder {
		return fileblob.OpenBucket(folder, &fileblob.Options{NoTempDir: true})
	}
	address, err := url.Parse(backend)
	if err != nil {
		return nil, errors.New("its URL is invalid")
	}
	mux := blob.DefaultURLMux()
	if address.Scheme == gcsblob.Scheme {
		if mux, err = authhelpers.GoogleCredentialsMux(ctx); err != nil {
			return nil, err
		}
	}
	bucket, err := mux.OpenBucket(ctx, backend)
	if err != nil {
		return nil, err
	}
	if prefix := strings.Trim(address.Path, "/"); prefix != "" {
		return blob.PrefixedBucket(bucket, prefix+"/"), nil
	}
	return bucket, nil
}

// folderOf returns the folder of a file backend; false for another backend.
func folderOf(backend string) (string, bool, error) {
	folder, ok := strings.CutPrefix(backend, "file://")
	if !ok {
		return "", false, nil
	}
	folder, _, _ = strings.Cut(folder, "?")
	rest, ok := strings.CutPrefix(folder, "~")
	if !ok {
		return folder, true, nil
	}
	home, err := os.UserHomeDir()
	return home + rest, true, err
}
