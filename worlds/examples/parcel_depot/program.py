"""A parcel depot: lockers with limits, couriers with loads, parcels with a history."""

from typing import Any, ClassVar, Literal, NotRequired, TypedDict

MAX_ATTEMPTS = 3
MAX_WEIGHT_GRAMS = 31_500

ParcelStatus = Literal["announced", "stored", "loaded", "on-tour", "delivered", "returned", "damaged"]


class Address(TypedDict):
    """Where a parcel goes. `note` is for the courier."""

    street: str
    city: str
    note: NotRequired[str]


class Parcel(TypedDict):
    """A parcel. A stored one lies in a locker, a loaded one or one on tour is with a courier."""

    parcel_id: str
    recipient: str
    address: Address
    weight_grams: int
    status: ParcelStatus
    locker_id: str | None
    courier_id: str | None
    attempts: int
    signed_by: str | None


class Locker(TypedDict):
    """A shelf for several parcels, up to a weight."""

    locker_id: str
    zone: Literal["A", "B", "cold"]
    max_grams: int
    parcel_ids: list[str]
    in_service: bool


class Courier(TypedDict):
    """A courier, who is at the depot or on tour."""

    courier_id: str
    name: str
    cities: list[str]
    max_parcels: int
    is_on_tour: bool


class ParcelDepot:
    """State and tools of the depot."""

    FOREIGN_KEYS: ClassVar[dict[str, str]] = {
        "parcels.locker_id": "lockers",
        "parcels.courier_id": "couriers",
        "lockers.parcel_ids[]": "parcels",
        "damage_reports.parcel_id": "parcels",
    }

    def __init__(self, state: dict[str, Any]) -> None:
        self.next_parcel: int = state["next_parcel"]
        self.parcels: dict[str, Parcel] = state["parcels"]
        self.lockers: dict[str, Locker] = state["lockers"]
        self.couriers: dict[str, Courier] = state["couriers"]
        self.damage_reports: list[dict[str, str]] = state["damage_reports"]

    # Queries

    def get_parcel(self, parcel_id: str) -> dict[str, Any]:
        """Show a parcel.

        Args:
            parcel_id: Id of the parcel.
        """
        if parcel_id not in self.parcels:
            return self._fail(f"there is no parcel {parcel_id}")
        return self._show(self.parcels[parcel_id])

    def find_parcels(self, status: ParcelStatus | None = None, city: str | None = None) -> dict[str, Any]:
        """List parcels, those with a status, those for a city, or both.

        Args:
            status: Only parcels with this status.
            city: Only parcels for this city.
        """
        found = [
            parcel
            for parcel in self.parcels.values()
            if status in (None, parcel["status"]) and city in (None, parcel["address"]["city"])
        ]
        return self._show(found)

    def list_lockers(self, zone: Literal["A", "B", "cold"] | None = None, min_free_grams: int = 0) -> dict[str, Any]:
        """List the lockers in service with their free weight.

        Args:
            zone: Only lockers of this zone.
            min_free_grams: Only lockers that can take at least so many grams more.
        """
        found = [
            {**locker, "free_grams": self._compute_free_grams(locker)}
            for locker in self.lockers.values()
            if locker["in_service"]
            and zone in (None, locker["zone"])
            and self._compute_free_grams(locker) >= min_free_grams
        ]
        return self._show(found)

    def get_courier(self, courier_id: str) -> dict[str, Any]:
        """Show a courier and the ids of the parcels with them.

        Args:
            courier_id: Id of the courier.
        """
        courier = self.couriers.get(courier_id)
        if courier is None:
            return self._fail(f"there is no courier {courier_id}")
        return self._show({**courier, "parcel_ids": [one["parcel_id"] for one in self._find_load(courier_id)]})

    def find_couriers(self, city: str) -> dict[str, Any]:
        """List the couriers at the depot who deliver in a city.

        Args:
            city: Name of the city.
        """
        found = [one for one in self.couriers.values() if city in one["cities"] and not one["is_on_tour"]]
        return self._show(found)

    # Changes

    def register_parcel(self, recipient: str, address: Address, weight_grams: int) -> dict[str, Any]:
        """Announce a parcel of at most 31.5 kilograms.

        Args:
            recipient: Name of the recipient.
            address: Where it goes.
            weight_grams: Weight in grams.
        """
        if not recipient.strip() or not address["street"].strip() or not address["city"].strip():
            return self._fail("recipient, street and city must not be empty")
        if not 0 < weight_grams <= MAX_WEIGHT_GRAMS:
            return self._fail(f"a parcel weighs between 1 and {MAX_WEIGHT_GRAMS} grams")
        parcel_id = f"P-{self.next_parcel}"
        self.next_parcel += 1
        self.parcels[parcel_id] = {
            "parcel_id": parcel_id,
            "recipient": recipient,
            "address": address,
            "weight_grams": weight_grams,
            "status": "announced",
            "locker_id": None,
            "courier_id": None,
            "attempts": 0,
            "signed_by": None,
        }
        return {"success": True, "message": f"parcel {parcel_id} is announced", "parcel_id": parcel_id}

    def store_parcel(self, parcel_id: str, locker_id: str) -> dict[str, Any]:
        """Put an announced or stored parcel into a locker in service that can take its weight.

        Args:
            parcel_id: Id of the parcel.
            locker_id: Id of the locker, another one than the present.
        """
        parcel, locker = self.parcels.get(parcel_id), self.lockers.get(locker_id)
        if parcel is None or locker is None:
            return self._fail("there is no such parcel or locker")
        if parcel["status"] not in ("announced", "stored") or parcel["locker_id"] == locker_id:
            return self._fail(f"parcel {parcel_id} is {parcel['status']} and cannot be put into {locker_id}")
        if not locker["in_service"]:
            return self._fail(f"locker {locker_id} is out of service")
        if parcel["weight_grams"] > self._compute_free_grams(locker):
            return self._fail(f"locker {locker_id} can take {self._compute_free_grams(locker)} grams more")
        self._take_out(parcel)
        locker["parcel_ids"].append(parcel_id)
        parcel["status"] = "stored"
        parcel["locker_id"] = locker_id
        return {"success": True, "message": f"parcel {parcel_id} is in locker {locker_id}"}

    def load_parcels(self, courier_id: str, parcel_ids: list[str]) -> dict[str, Any]:
        """Hand stored parcels to a courier at the depot, all of them or none.

        Args:
            courier_id: Id of the courier, who must deliver in the cities of the parcels.
            parcel_ids: Ids of the parcels, each once.
        """
        courier = self.couriers.get(courier_id)
        if courier is None or courier["is_on_tour"]:
            return self._fail(f"there is no courier {courier_id} at the depot")
        if not parcel_ids or len(set(parcel_ids)) < len(parcel_ids):
            return self._fail("name at least one parcel, and each once")
        parcels = [self.parcels[one] for one in parcel_ids if one in self.parcels]
        wrong = [one["parcel_id"] for one in parcels if one["status"] != "stored"]
        if len(parcels) < len(parcel_ids) or wrong:
            return self._fail("only stored parcels can be loaded")
        if len(self._find_load(courier_id)) + len(parcels) > courier["max_parcels"]:
            return self._fail(f"courier {courier_id} can carry {courier['max_parcels']} parcels")
        if any(one["address"]["city"] not in courier["cities"] for one in parcels):
            return self._fail(f"courier {courier_id} delivers in {', '.join(courier['cities'])}")
        for parcel in parcels:
            self._take_out(parcel)
            parcel["status"] = "loaded"
            parcel["courier_id"] = courier_id
        return {"success": True, "message": f"{len(parcels)} parcels are with courier {courier_id}"}

    def unload_parcel(self, parcel_id: str, locker_id: str) -> dict[str, Any]:
        """Take a loaded parcel back into a locker, while its courier is at the depot.

        Args:
            parcel_id: Id of the parcel.
            locker_id: Id of the locker.
        """
        parcel, locker = self.parcels.get(parcel_id), self.lockers.get(locker_id)
        if parcel is None or parcel["status"] != "loaded":
            return self._fail(f"there is no loaded parcel {parcel_id}")
        if locker is None or not locker["in_service"] or parcel["weight_grams"] > self._compute_free_grams(locker):
            return self._fail(f"locker {locker_id} cannot take the parcel")
        locker["parcel_ids"].append(parcel_id)
        parcel["status"] = "stored"
        parcel["locker_id"] = locker_id
        parcel["courier_id"] = None
        return {"success": True, "message": f"parcel {parcel_id} is in locker {locker_id}"}

    def start_tour(self, courier_id: str) -> dict[str, Any]:
        """Send a courier with at least one loaded parcel on tour.

        Args:
            courier_id: Id of the courier.
        """
        courier = self.couriers.get(courier_id)
        if courier is None or courier["is_on_tour"]:
            return self._fail(f"there is no courier {courier_id} at the depot")
        load = self._find_load(courier_id)
        if not load:
            return self._fail(f"courier {courier_id} has no parcels")
        courier["is_on_tour"] = True
        for parcel in load:
            parcel["status"] = "on-tour"
        return {"success": True, "message": f"courier {courier_id} is on tour with {len(load)} parcels"}

    def record_delivery(self, parcel_id: str, signed_by: str) -> dict[str, Any]:
        """Record that a parcel on tour was delivered.

        Args:
            parcel_id: Id of the parcel.
            signed_by: Name of the person who signed.
        """
        parcel = self.parcels.get(parcel_id)
        if parcel is None or parcel["status"] != "on-tour":
            return self._fail(f"there is no parcel {parcel_id} on tour")
        if not signed_by.strip():
            return self._fail("a signature is needed")
        parcel["status"] = "delivered"
        parcel["courier_id"] = None
        parcel["signed_by"] = signed_by
        parcel["attempts"] += 1
        return {"success": True, "message": f"parcel {parcel_id} was delivered"}

    def record_attempt(self, parcel_id: str) -> dict[str, Any]:
        """Record that nobody took a parcel on tour. After the third attempt it is returned to its sender.

        Args:
            parcel_id: Id of the parcel.
        """
        parcel = self.parcels.get(parcel_id)
        if parcel is None or parcel["status"] != "on-tour":
            return self._fail(f"there is no parcel {parcel_id} on tour")
        parcel["attempts"] += 1
        if parcel["attempts"] >= MAX_ATTEMPTS:
            parcel["status"] = "returned"
            parcel["courier_id"] = None
        return {"success": True, "message": f"parcel {parcel_id}: attempt {parcel['attempts']}, {parcel['status']}"}

    def end_tour(self, courier_id: str) -> dict[str, Any]:
        """End a courier's tour. Parcels that are still on tour are loaded again.

        Args:
            courier_id: Id of the courier.
        """
        courier = self.couriers.get(courier_id)
        if courier is None or not courier["is_on_tour"]:
            return self._fail(f"courier {courier_id} is not on tour")
        courier["is_on_tour"] = False
        for parcel in self._find_load(courier_id):
            parcel["status"] = "loaded"
        return {"success": True, "message": f"courier {courier_id} is back at the depot"}

    def report_damage(self, parcel_id: str, description: str) -> dict[str, Any]:
        """Report damage to a stored parcel, which is then taken out of its locker.

        Args:
            parcel_id: Id of the parcel.
            description: What is damaged.
        """
        parcel = self.parcels.get(parcel_id)
        if parcel is None or parcel["status"] != "stored" or not description.strip():
            return self._fail(f"there is no stored parcel {parcel_id}, or no description")
        self._take_out(parcel)
        parcel["status"] = "damaged"
        self.damage_reports.append({"parcel_id": parcel_id, "description": description})
        return {"success": True, "message": f"parcel {parcel_id} is damaged"}

    def change_address(self, parcel_id: str, address: Address) -> dict[str, Any]:
        """Change the address of a parcel that is announced or stored.

        Args:
            parcel_id: Id of the parcel.
            address: New address.
        """
        parcel = self.parcels.get(parcel_id)
        if parcel is None or parcel["status"] not in ("announced", "stored"):
            return self._fail(f"parcel {parcel_id} is not at the depot")
        if not address["street"].strip() or not address["city"].strip():
            return self._fail("street and city must not be empty")
        parcel["address"] = address
        return {"success": True, "message": f"parcel {parcel_id} goes to {address['city']}"}

    def set_locker_service(self, locker_id: str, in_service: bool) -> dict[str, Any]:
        """Take an empty locker out of service, or bring one back.

        Args:
            locker_id: Id of the locker.
            in_service: Whether it is in service from now on.
        """
        locker = self.lockers.get(locker_id)
        if locker is None or locker["in_service"] is in_service:
            return self._fail(f"locker {locker_id} is not there, or has that state already")
        if locker["parcel_ids"]:
            return self._fail(f"locker {locker_id} is not empty")
        locker["in_service"] = in_service
        return {"success": True, "message": f"locker {locker_id} is {'in' if in_service else 'out of'} service"}

    # Helpers

    def _compute_free_grams(self, locker: Locker) -> int:
        return locker["max_grams"] - sum(self.parcels[one]["weight_grams"] for one in locker["parcel_ids"])

    def _find_load(self, courier_id: str) -> list[Parcel]:
        return [parcel for parcel in self.parcels.values() if parcel["courier_id"] == courier_id]

    def _take_out(self, parcel: Parcel) -> None:
        """Take a parcel out of its locker, if it is in one."""
        if parcel["locker_id"] is not None:
            self.lockers[parcel["locker_id"]]["parcel_ids"].remove(parcel["parcel_id"])
            parcel["locker_id"] = None

    @staticmethod
    def _show(data: Any) -> dict[str, Any]:
        return {"success": True, "data": data}

    @staticmethod
    def _fail(error: str) -> dict[str, Any]:
        return {"success": False, "error": error}
