package spec

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/sys/user"

	"minik8s/internal/kubelet/cri"
)

// User is the user and groups of a container's process, as numbers.
type User struct {
	UID, GID uint32
	Groups   []uint32 // supplementary, without GID
}

// LookupUser decides it from the pod's security settings and the image's user ("user", "user:group", by name or
// number), looking names up in the contents of the image's /etc/passwd and /etc/group. The supplementary groups are
// those of the pod and, unless StrictGroups, those that /etc/group has the user in, as Kubernetes' policy Merge
// (KEP-3619) says. The error names the user or group that is not in these files.
func LookupUser(image string, s cri.Security, passwd, group string) (User, error) {
	name, groupName, _ := strings.Cut(image, ":")
	if s.RunAsUser != nil {
		name, groupName = strconv.FormatInt(*s.RunAsUser, 10), ""
	}
	name = cmp.Or(name, "0")
	who, err := user.GetExecUser(strings.TrimSuffix(name+":"+groupName, ":"), nil, strings.NewReader(passwd), strings.NewReader(group))
	switch {
	case errors.Is(err, user.ErrNoPasswdEntries):
		return User{}, fmt.Errorf("%q is not in the image's /etc/passwd", name)
	case errors.Is(err, user.ErrNoGroupEntries):
		return User{}, fmt.Errorf("group %q is not in the image's /etc/group", groupName)
	case err != nil:
		return User{}, fmt.Errorf("%q: %w", image, err)
	}
	u := User{UID: uint32(who.Uid), GID: uint32(who.Gid)}
	if s.RunAsGroup != nil {
		u.GID = uint32(*s.RunAsGroup)
	}
	var groups []int64
	if !s.StrictGroups {
		if groups, err = groupsOf(who.Uid, name, passwd, group); err != nil {
			return User{}, err
		}
	}
	for _, gid := range append(groups, s.SupplementalGroups...) {
		if g := uint32(gid); g != u.GID && !slices.Contains(u.Groups, g) {
			u.Groups = append(u.Groups, g)
		}
	}
	return u, nil
}

// groupsOf are the groups that list a user, also when the image names a group of its own, for which GetExecUser
// leaves them out. name is the user's, or a number.
func groupsOf(uid int, name, passwd, group string) ([]int64, error) {
	if _, err := strconv.Atoi(name); err == nil {
		users, err := user.ParsePasswdFilter(strings.NewReader(passwd), func(u user.User) bool { return u.Uid == uid })
		if err != nil || len(users) == 0 {
			return nil, err
		}
		name = users[0].Name
	}
	list, err := user.ParseGroupFilter(strings.NewReader(group), func(g user.Group) bool { return slices.Contains(g.List, name) })
	var out []int64
	for _, g := range list {
		out = append(out, int64(g.Gid))
	}
	return out, err
}
