// Package logind asks systemd-logind, over D-Bus, to be told before the machine shuts down, and for time until then.
//
// Who calls it: roles, which hands it to the kubelet's package shutdown as the interface that declares; Forget is for
// clean. It knows no pod. The bus is the system's, or the one in DBUS_SYSTEM_BUS_ADDRESS.
//
// An inhibitor lock of the mode "delay" makes logind wait with a shutdown until the lock is released, at most as long as
// its InhibitDelayMaxSec says (5 s where nobody has set it). RaiseMaxDelay asks for more by a drop-in file. That lies in
// /run, so a machine that starts without minik8sd has its own setting again; its name has the seconds and the owner, so
// that of several daemons on a machine the largest wish counts, and Forget removes the owner's alone. It waits for logind
// to have read it, and says what logind grants then: the administrator's files may say something else.
//
// While a Conn is open it costs one goroutine that reads the bus. Nothing is polled, but for up to two seconds after a
// file was written.
//
// The kernel releases a lock with the process, also by kill -9. The drop-in survives that, and is found and kept or
// replaced by the next run.
package logind
